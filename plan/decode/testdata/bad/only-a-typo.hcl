# A misspelt threshold is one mistake, not two: that the block is empty follows.
server "s" {
  endpoint {
    url = "http://127.0.0.1:8000"
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = [1]
  }
  sla {
    tftt = "p95 < 2s" # ERROR: Unsupported argument
  }
  good {
    tpot_ = "< 2s" # ERROR: Unsupported argument
  }
}
