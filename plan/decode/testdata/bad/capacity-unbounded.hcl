server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "elsewhere" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla {
    at   = 8
    ttft = "p95 < 8s"
  }
  capacity { # ERROR: Capacity without threshold
    up_to   = 64
    require = 8
  }
}
