server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [2, 8] }

  sla {
    ttft = "< 8s" # ERROR: Missing statistic
  }
  sla {
    ttft = "p95 < 8" # ERROR: Missing unit
  }
  sla {
    ttft = 8 # ERROR: Missing unit
  }
  sla {
    ttft = "p95 < 8 tok/s" # ERROR: Wrong unit
  }
  sla {
    ttft = "p95 < 8 parsecs" # ERROR: Wrong unit
  }
  sla {
    ttft = "p95 > 8s" # ERROR: Threshold points the wrong way
  }
  sla {
    ttft = "p95 8s" # ERROR: Invalid threshold
  }
  sla {
    ttft = "p95 == 8s" # ERROR: Invalid threshold
  }
  sla {
    ttft = "p95 < s" # ERROR: Invalid threshold
  }
  sla {
    ttft = "p95 << 8s" # ERROR: Invalid threshold
  }
  sla {
    ttft = "p99.99 < 8s" # ERROR: Unknown statistic
  }
  sla {
    ttft = "meen < 8s" # ERROR: Unknown statistic
  }
  sla {
    ttft = "share < 8s" # ERROR: Statistic not allowed
  }
  sla {
    ttft = "p95 < 0s" # ERROR: Value out of range
  }
  sla {
    ttft = ["p95 < 8s", "p95 < 9s"] # ERROR: Duplicate threshold
  }
  sla {
    ttft = ["p95 < 8s", true] # ERROR: Wrong type
  }
  sla {
    ttft = ["p95 < 8s", null] # ERROR: Wrong type
  }
  sla {
    speed = "mean > 15 tok" # ERROR: Wrong unit
  }
  sla {
    speed = "mean < 15 tok/s" # ERROR: Threshold points the wrong way
  }
  sla {
    throughput = "p95 > 15 tok/s" # ERROR: Statistic not allowed
  }
  sla {
    throughput = "avg > 15 tok/s" # ERROR: Unknown statistic
  }
  sla {
    success = ">= 98%" # ERROR: Missing statistic
  }
  sla {
    success = "all" # ERROR: Invalid threshold
  }
  sla {
    success = "mean >= 98%" # ERROR: Statistic not allowed
  }
  sla {
    success = "rate >= 0.98" # ERROR: Missing unit
  }
  sla {
    success = "rate >= 101%" # ERROR: Value out of range
  }
  sla {
    goodput = "share >= 95%" # ERROR: Goodput without good block
  }
  sla {
    scaling_efficiency = "> 40%" # ERROR: Scaling efficiency without level 1
  }
  sla { # ERROR: Block requires nothing
    at = 8
  }
  sla {
    severity = "warning" # ERROR: Unknown choice
    ttft     = "p95 < 8s"
  }
  sla {
    at   = [3, 8]     # ERROR: Unknown level
    ttft = "p95 < 8s"
  }
  sla {
    at   = "burst 8" # ERROR: Unknown level
    ttft = "p95 < 8s"
  }
  sla {
    at   = [8, "8"] # ERROR: Duplicate level
    ttft = "p95 < 8s"
  }
  sla {
    at   = true # ERROR: Wrong type
    ttft = "p95 < 8s"
  }
  sla {
    at   = 1.5 # ERROR: Value out of range
    ttft = "p95 < 8s"
  }
}

workload "good" {
  input_tokens  = 1024
  output_tokens = 128
  load { burst = 8 }
  good {
    ttft = "p95 < 2s" # ERROR: Statistic not allowed
    tpot = "50ms"     # ERROR: Invalid threshold
  }
  sla {
    at      = 8 # ERROR: Unknown level
    goodput = "mean > 3 req/s" # ERROR: Statistic not allowed
  }
}

workload "empty" {
  input_tokens  = 1024
  output_tokens = 128
  load { burst = 8 }
  good { # ERROR: Block requires nothing
  }
  sla { success = "every" }
}
