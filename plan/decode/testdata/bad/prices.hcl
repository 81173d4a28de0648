server "s" {
  endpoint {
    url = "http://127.0.0.1:8000"
  }
}

workload "w" {
  input_tokens  = 100
  output_tokens = 10
  load {
    concurrency = 8
    requests    = 200
  }
  sla {
    cost_per_million_tokens = "< 2 USD" # ERROR: Missing setting
  }
}
