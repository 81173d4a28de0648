server "s" {
  simulator {}
}

workload "spike" {
  input_tokens  = 256
  output_tokens = 64
  load {
    stage "calm" {
      rate     = "2 req/s"
      duration = "1m"
    }
    stage "after" {
      rate     = "3 req/s"
      duration = "1m"
    }
  }
  sla { # ERROR: Missing setting
    ttft = "p95 < 2s"
  }
  sla {
    at         = "after"
    throughput = "> 20 tok/s" # ERROR: Conflicting settings
    recovery   = "< 30s"      # ERROR: Missing setting
  }
}

workload "steady" {
  input_tokens  = 256
  output_tokens = 64
  load { rate = "4 req/s" }
  sla {
    ttft     = "p95 < 2s"
    recovery = "< 30s" # ERROR: Conflicting settings
  }
}
