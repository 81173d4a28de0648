server "s" {
  endpoint { url = "http://127.0.0.1:8001" }
}

workload "units" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    rate = [
      4,          # ERROR: Missing unit
      "4",        # ERROR: Missing unit
      "4 rps",     # ERROR: Wrong unit
      "0 req/s",  # ERROR: Value out of range
      "1e6 req/s", # ERROR: Wrong unit
      true,       # ERROR: Wrong type
    ]
  }
  sla { ttft = "p95 < 2s" }
}

workload "same" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    rate = [
      "4 req/s",
      "240 req/min", # ERROR: Duplicate level
    ]
  }
  sla {
    at = [
      "4 req/s",
      "8 req/s", # ERROR: Unknown level
    ]
    ttft = "p95 < 2s"
  }
}

workload "shapes" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = 4
    rate        = "4 req/s" # ERROR: Conflicting settings
  }
  load {
    concurrency   = 8
    arrivals      = "gamma" # ERROR: Conflicting settings
    burstiness    = 0.5
    max_in_flight = 100     # ERROR: Conflicting settings
  }
  load {
    rate     = "1 req/s"
    pause    = "1s" # ERROR: Conflicting settings
    stagger  = "1s" # ERROR: Conflicting settings
    bursts   = 3    # ERROR: Conflicting settings
    warmup   = 30   # ERROR: Wrong type
    requests = 10   # ERROR: Conflicting settings
    duration = "1m"
  }
  load {
    rate     = "2 req/s"
    arrivals = "gamma" # ERROR: Missing setting
  }
  load {
    rate       = "3 req/s"
    burstiness = 0.5 # ERROR: Conflicting settings
  }
  load {
    rate     = "5 req/s"
    arrivals = "uniform" # ERROR: Unknown choice
  }
  sla {
    at   = 8
    ttft = "p95 < 2s"
  }
}

workload "capacity" {
  input_tokens  = 256
  output_tokens = 64
  sla { ttft = "p95 < 2s" }
  capacity {
    over       = "rate"
    up_to      = 40      # ERROR: Missing unit
    from       = "100 req/s"
    require    = "8 s"   # ERROR: Wrong unit
    resolution = 2       # ERROR: Wrong type
    confirm    = true    # ERROR: Conflicting settings
  }
}

workload "required" {
  input_tokens  = 256
  output_tokens = 64
  sla { ttft = "p95 < 2s" }
  capacity {
    over    = "rate"
    up_to   = "40 req/s"
    require = "50 req/s" # ERROR: Value out of range
  }
}

workload "stages" {
  input_tokens  = 256
  output_tokens = 64
  load {
    requests = 100 # ERROR: Conflicting settings
    stage "capacity" { # ERROR: Value out of range
      rate     = "2 req/s"
      duration = "1m"
    }
    stage "4 req/s" { # ERROR: Value out of range
      rate     = "2 req/s"
      duration = "1m"
    }
    stage "ramp" {
      rate     = { from = "2 req/s" } # ERROR: Missing setting
      duration = "1m"
    }
    stage "unit" {
      rate     = { from = "2 req/s", to = 4 } # ERROR: Missing unit
      duration = "1m"
    }
    stage "none" {
      rate     = "0 req/s" # ERROR: Value out of range
      duration = "1m"
    }
    stage "short" {
      rate     = "1 req/s"
      duration = "1ms" # ERROR: Value out of range
    }
  }
  load {
    rate = "4 req/s" # ERROR: Conflicting settings
    stage "also" {
      rate     = "4 req/s"
      duration = "1m"
    }
  }
  sla {
    at   = "also"
    ttft = "p95 < 2s"
  }
}
