server "s" {
  endpoint { url = "http://127.0.0.1:8001" }
}

workload "chat" {
  input_tokens  = 1024
  output_tokens = { mean = 256, jitter = "50%" }
  load {
    rate       = ["2 req/s", "240 req/min"] # levels "2 req/s" and "4 req/s"
    arrivals   = "gamma"
    burstiness = 0.7
    duration   = "10m"
    warmup     = "30s"
  }
  sla {
    at   = "240 req/min"
    ttft = "p95 < 2s"
  }
}

workload "capacity" {
  input_tokens  = 256
  output_tokens = 64
  load {
    rate       = "2 req/s"
    arrivals   = "gamma"
    burstiness = 0.5
    saturate   = false
  }
  sla {
    at   = ["capacity", "2 req/s"]
    ttft = "p95 < 2s"
  }
  capacity {
    over    = "rate"
    up_to   = "2400 req/min"
    require = "8 req/s"
    budget  = "10m"

    largest_rate = "12 req/s"
  }
}

workload "spike" {
  input_tokens  = 256
  output_tokens = 64
  load {
    seeds = [1, 2]
    stage "calm" {
      rate     = "2 req/s"
      duration = "1m"
    }
    stage "after" {
      rate     = { from = "12 req/s", to = "120 req/min" } # 7 req/s on average
      duration = "20s"
    }
  }
  sla {
    at       = "after"
    ttft     = "p95 < 2s"
    recovery = "< 30s"
  }
}
