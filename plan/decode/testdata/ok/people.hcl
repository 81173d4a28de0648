server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" {
  input_tokens  = 256
  output_tokens = 64
  prompt {
    turns = { mean = 6, max = 20 }
  }
  load {
    users      = [50, 100]
    ramp_up    = "1m"
    think_time = { mean = "20s", cv = 1 }
    duration   = "10m"
  }
  load {
    rate       = "4 req/s"
    think_time = "20s"
  }
  sla {
    at         = ["50 users", "4 req/s", "capacity"]
    ttft_later = "p95 < 2s"
  }
  capacity {
    over    = "users" # a probe is ten minutes, as the load has them
    up_to   = 400
    require = 80
  }
}
