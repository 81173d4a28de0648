# Requests that arrive at rates, a spike, and the largest rate. `make browser` runs this plan.

server "vllm" {
  simulator {}
}

workload "chat" {
  title         = "Chat"
  description   = "Questions as they come in over a working day."
  input_tokens  = 256
  output_tokens = { mean = 96, jitter = "50%" }
  load {
    rate     = ["2 req/s", "4 req/s", "6 req/s"]
    duration = "4m"
  }
  sla {
    ttft  = "p95 < 2s"
    speed = "mean > 20 tok/s"
  }
  capacity {
    over    = "rate"
    up_to   = "40 req/s"
    require = "6 req/s"
    budget  = "10m"
  }
}

workload "spike" {
  title         = "A spike"
  description   = "Somebody links to us for a minute."
  input_tokens  = 256
  output_tokens = { mean = 96, jitter = "50%" }
  load {
    stage "calm" {
      rate     = "2 req/s"
      duration = "1m"
    }
    stage "spike" {
      rate     = "15 req/s"
      duration = "30s"
    }
    stage "after" {
      rate     = "2 req/s"
      duration = "2m"
    }
  }
}
