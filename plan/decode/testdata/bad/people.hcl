server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "slots" {
  input_tokens  = 256
  output_tokens = 64
  prompt {
    turns = 6
  }
  load { # ERROR: Conflicting settings
    concurrency = [4]
  }
  sla { success = "every" }
}

workload "thinking" {
  input_tokens  = 256
  output_tokens = 64
  load {
    concurrency = [4]
    think_time  = "20s" # ERROR: Conflicting settings
    ramp_up     = "1m"  # ERROR: Conflicting settings
  }
  load { # ERROR: Conflicting settings
    rate       = "4 req/s"
    think_time = "20s"
  }
  sla { success = "every" }
}

workload "values" {
  input_tokens  = 256
  output_tokens = 64
  prompt {
    turns = { mean = 12, max = 20 } # ERROR: Value out of range
  }
  load {
    users      = [50]
    think_time = { mean = "20s", cv = 11 } # ERROR: Value out of range
    requests   = 300                       # ERROR: Conflicting settings
    pause      = "1s"                      # ERROR: Conflicting settings
  }
  sla { success = "every" }
}

workload "missing" {
  input_tokens  = 256
  output_tokens = 64
  prompt {
    turns = { mean = 6 } # ERROR: Missing setting
  }
  load {
    users      = [50]
    think_time = { cv = 1 } # ERROR: Missing setting
  }
  sla { success = "every" }
}

workload "api" {
  api           = "completions"
  input_tokens  = 256
  output_tokens = 64
  prompt {
    turns = 6 # ERROR: Conflicting settings
  }
  load { users = [50] }
  sla {
    at   = "50" # ERROR: Unknown level
    ttft = "p95 < 2s"
  }
}

workload "searched" {
  input_tokens  = 256
  output_tokens = 64
  prompt {
    turns = 6
  }
  load { users = [50] }
  sla { ttft = "p95 < 2s" }
  capacity { # ERROR: Conflicting settings
    up_to = 100
  }
}

workload "counted" {
  input_tokens  = 256
  output_tokens = 64
  load { users = [50] }
  sla { ttft = "p95 < 2s" }
  capacity {
    over         = "users"
    up_to        = 100
    requests     = 300  # ERROR: Conflicting settings
    max_requests = 3000 # ERROR: Conflicting settings
  }
}

workload "nobody" {
  input_tokens  = 256
  output_tokens = 64
  load { concurrency = [50] }
  sla { ttft = "p95 < 2s" }
  capacity { # ERROR: Missing setting
    over  = "users"
    up_to = 100
  }
}
