server "s" {
  simulator {}
}

workload "long" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  residue {
    settle = "2h" # ERROR: Value out of range
  }
}

workload "unknown" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  residue {
    bursts = true # ERROR: Unsupported argument
  }
}

workload "twice" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  residue { burst = 256 } # ERROR: Wrong type
  sla { ttft = "p95 < 2s" }
}

workload "trace" {
  load {
    trace = "lib/trace.jsonl"
  }
  residue {} # ERROR: Conflicting settings
  sla { ttft = "p95 < 2s" }
}

workload "stages" {
  input_tokens  = 64
  output_tokens = 64
  load {
    max_in_flight = 100
    stage "a" {
      rate     = "3 req/s"
      duration = "60s"
    }
  }
  residue {} # ERROR: Conflicting settings
  sla {
    at   = ["a"]
    ttft = "p95 < 2s"
  }
}

workload "searched" {
  input_tokens  = 64
  output_tokens = 64
  capacity { up_to = 8 }
  residue {} # ERROR: Conflicting settings
  sla { ttft = "p95 < 2s" }
}
