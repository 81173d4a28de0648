server "local" {
  simulator {}
}

workload "shapes" {
  input_tokens  = 1024
  output_tokens = 256

  load { concurrency = [1, 2, 4, 8] }
  load {
    burst  = [1, 8, 32, 128, 256]
    bursts = 10
    pause  = "2s"
  }
  sla {
    at   = [8, "burst 32"]
    ttft = "mean <= 3s"
  }
  sla {
    at                 = 8
    scaling_efficiency = "> 40%"
    throughput         = "> 200 tok/s"
    request_rate       = ">= 30 req/min"
  }
}
