server "s" {
  simulator {}
}

workload "no_share" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  cancel { # ERROR: Missing required argument
    after = "1s"
  }
  sla { ttft = "p95 < 2s" }
}

workload "all" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  cancel {
    share = "95%" # ERROR: Value out of range
    after = "1s"
  }
  sla { ttft = "p95 < 2s" }
}

workload "never" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  cancel { # ERROR: Missing setting
    share = "5%"
  }
  sla { ttft = "p95 < 2s" }
}

workload "twice" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  cancel {
    share        = "5%"
    after        = "1s"
    after_tokens = 3 # ERROR: Conflicting settings
  }
  sla { ttft = "p95 < 2s" }
}

workload "trace" {
  load {
    trace = "lib/trace.jsonl"
  }
  cancel { # ERROR: Conflicting settings
    share = "5%"
    after = "1s"
  }
  sla { ttft = "p95 < 2s" }
}
