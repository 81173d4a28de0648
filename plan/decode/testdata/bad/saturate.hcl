# Plans that forbid to measure the largest rate of a server.
server "sim" {
  simulator {}
}

workload "loop" {
  input_tokens  = 100
  output_tokens = 20
  load {
    concurrency = 4
    saturate    = false # ERROR: Conflicting settings
  }
  sla { ttft = "p95 < 2s" }
}

workload "unknown" {
  input_tokens  = 100
  output_tokens = 20
  load {
    rate     = "4 req/s"
    saturate = false
  }
  sla { ttft = "p95 < 2s" }
  capacity { # ERROR: Missing setting
    over  = "rate"
    up_to = "20 req/s"
  }
}

workload "above" {
  input_tokens  = 100
  output_tokens = 20
  sla { ttft = "p95 < 2s" }
  capacity {
    over         = "rate"
    up_to        = "20 req/s"
    require      = "12 req/s" # ERROR: Conflicting settings
    largest_rate = "10 req/s"
  }
}

workload "levels" {
  input_tokens  = 100
  output_tokens = 20
  sla { ttft = "p95 < 2s" }
  capacity {
    up_to        = 64
    largest_rate = "10 req/s" # ERROR: Conflicting settings
  }
}
