server "s" {
  endpoint { url = "http://127.0.0.1:1" }
}

workload "w" {
  input_tokens  = 10
  output_tokens = 10

  load {
    concurrency = [8]
    waves       = 20 # ERROR: Conflicting settings
    requests    = 200
  }

  load {
    concurrency = [4]
    waves       = 20 # ERROR: Conflicting settings
    duration    = "1m"
  }

  load {
    rate  = ["4 req/s"]
    waves = 20 # ERROR: Conflicting settings
  }

  load {
    burst = [16]
    waves = 20 # ERROR: Conflicting settings
  }

  load {
    concurrency = [2]
    waves       = 0 # ERROR: Value out of range
  }

  sla { ttft = "p95 < 2s" }
}
