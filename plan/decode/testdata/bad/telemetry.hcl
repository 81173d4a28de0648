server "s" {
  endpoint {
    url = "http://127.0.0.1:8000"
  }
  telemetry {
    interval    = "10ms"                          # ERROR: Value out of range
    metrics_url = "ftp://127.0.0.1/metrics"       # ERROR: Invalid URL
    dcgm_url    = "http://user:pw@127.0.0.1:9400" # ERROR: Invalid URL
    enabled     = "yes"                           # ERROR: Wrong type
    page        = "/metrics"                      # ERROR: Unsupported argument
  }
}

server "hot" {
  endpoint {
    url = "http://127.0.0.1:8001"
  }
  telemetry {
    require = { throttling = "< 1%" } # ERROR: Unknown choice
  }
}

server "hotter" {
  endpoint {
    url = "http://127.0.0.1:8002"
  }
  telemetry {
    require = { throttled = "> 1%" } # ERROR: Value out of range
  }
}

server "shared" {
  endpoint {
    url = "http://127.0.0.1:8003"
  }
  telemetry {
    require = { foreign_processes = "none" } # ERROR: Value out of range
  }
}

prices {
  currency    = "US dollars"       # ERROR: Value out of range
  per_hour    = { s = 2.5, t = 3 } # ERROR: Invalid server reference
  electricity = "cheap"            # ERROR: Wrong type
}

workload "w" {
  input_tokens  = 100
  output_tokens = 10
  load {
    concurrency = 8
    requests    = 200
  }
  sla {
    queue_wait       = "< 1s"               # ERROR: Missing statistic
    prefill          = "max < 1s"           # ERROR: Statistic not allowed
    decode           = "every < 1s"         # ERROR: Statistic not allowed
    kv_usage         = "< 95%"              # ERROR: Missing statistic
    running          = "p95 < 3 requests"   # ERROR: Statistic not allowed
    waiting          = "max < 3"            # ERROR: Missing unit
    power            = "mean < 1 J"         # ERROR: Wrong unit
    gpu_memory       = "max < 80 gigabytes" # ERROR: Wrong unit
    gpu_clock        = "min < 1 GHz"        # ERROR: Threshold points the wrong way
    accept_rate      = "mean > 60%"         # ERROR: Statistic not allowed
    preemptions      = "< 0"                # ERROR: Value out of range
    cost_per_hour    = "< 5 GBP"            # ERROR: Wrong unit
    energy_per_token = "mean < 1 J/token"   # ERROR: Statistic not allowed
  }
  good {
    queue_wait = "< 1s" # ERROR: Unsupported argument
  }
}

assert "a" {
  condition     = result.s.w.level[8].kv_usage.p95 < 0.9 # ERROR: Unknown result
  error_message = "No."
}

assert "b" {
  condition     = result.s.w.level[8].accept_rate_at.first > 0.9 # ERROR: Unknown result
  error_message = "No."
}

assert "c" {
  condition     = result.s.w.level[8].queue_wait.max < 0.9 # ERROR: Unknown result
  error_message = "No."
}
