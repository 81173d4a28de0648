server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "both" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = [1]
    burst       = [8] # ERROR: Conflicting settings
  }
  load { # ERROR: Missing setting
  }
  load {
    concurrency = [] # ERROR: Missing setting
  }
}

workload "typo" {
  input_tokens  = 64
  output_tokens = 16
  load {
    concurency = 8 # ERROR: Unsupported argument
  }
}

workload "levels" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = [1, 1]   # ERROR: Duplicate level
  }
  load {
    concurrency = 1   # ERROR: Duplicate level
  }
  load {
    concurrency = 0   # ERROR: Value out of range
  }
  load {
    concurrency = "many" # ERROR: Wrong type
  }
  sla { success = "every" }
}

workload "requests" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = [8, 16]
    requests    = 15 # ERROR: Too few requests
    seeds       = [1, 2] # two rounds of eight need 16
  }
}

workload "rounds" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = [32]
    requests    = 100
    seeds       = [1, 2, 3, 4]
  }
}

workload "map" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = [64]
    requests    = { 63 = 60, default = 300 } # ERROR: Unknown level
  }
}

workload "burst" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    burst    = [64]
    requests = 640  # ERROR: Conflicting settings
    stagger  = "1s" # ERROR: Conflicting settings
  }
  load {
    concurrency = 2
    bursts      = 3 # ERROR: Conflicting settings
  }
  load {
    burst    = [32]
    duration = "5m" # ERROR: Conflicting settings
  }
}

workload "time" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = 2
    duration    = "5m"
    requests    = 300 # ERROR: Conflicting settings
  }
  load {
    concurrency = 4
    duration    = "10ms" # ERROR: Value out of range
  }
  load {
    concurrency = 8
    duration    = 60 # ERROR: Missing unit
  }
}

workload "seeds" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = 2
    seeds       = [1, 2, 1] # ERROR: Duplicate seed
  }
  load {
    concurrency = 3
    seeds       = [] # ERROR: Missing setting
  }
  load {
    concurrency = 4
    warmup      = "some" # ERROR: Wrong type
    stagger     = "-1s"  # ERROR: Value out of range
    pause       = "1"    # ERROR: Invalid duration
    timeout     = "0s"   # ERROR: Value out of range
  }
}
