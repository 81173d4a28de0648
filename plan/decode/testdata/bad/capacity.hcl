gate {
  budget = "30m"
}

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "bounds" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { ttft = "p95 < 8s" }
  capacity {
    over       = "queue" # ERROR: Unknown choice
    up_to      = 64
    from       = 65   # ERROR: Value out of range
    require    = 128  # ERROR: Value out of range
    resolution = "0%" # ERROR: Value out of range
    budget     = "1h" # ERROR: Conflicting settings
    requests   = 0    # ERROR: Value out of range
    confirm    = "no" # ERROR: Wrong type
  }
}

workload "most" {
  input_tokens  = 1024
  output_tokens = 128
  sla { ttft = "p95 < 8s" }
  capacity {
    up_to        = 64
    requests     = 500
    max_requests = 400 # ERROR: Conflicting settings
  }
}

workload "units" {
  input_tokens  = 1024
  output_tokens = 128
  sla { ttft = "p95 < 8s" }
  capacity { # ERROR: Missing required argument
    from       = 8
    require    = 4   # ERROR: Value out of range
    resolution = 0.5 # ERROR: Value out of range
    budget     = 40  # ERROR: Missing unit
  }
}

workload "none" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla {
    at   = [8, "capacity"] # ERROR: Workload has no capacity search
    ttft = "p95 < 8s"
  }
}

workload "twice" {
  input_tokens  = 1024
  output_tokens = 128
  sla {
    at   = ["capacity", "capacity"] # ERROR: Duplicate level
    ttft = "p95 < 8s"
  }
  capacity { up_to = 64 }
  capacity { up_to = 8 } # ERROR: Duplicate block
}
