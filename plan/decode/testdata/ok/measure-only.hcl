gate {
  measure_only = true
}

server "local" {
  simulator {
    profile = "default"
    seed    = 7
  }
}

workload "mlperf" {
  preset        = "mlperf_llama2_70b"
  api           = "completions"
  input_tokens  = 294
  output_tokens = { mean = 286, jitter = 0.5 }
  load {
    concurrency = [3]
    requests    = 10
  }
  sla { tpot = "p99 <= 100ms" }
}
