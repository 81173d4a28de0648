# What a part cannot bound.

server "vllm" {
  simulator {}
}

workload "chat" {
  input_tokens  = 256
  output_tokens = 64
  sla {
    ttft    = "p95 < 2s"
    waiting = "max < 10 requests" # ERROR: Conflicting settings
  }
}

workload "long" {
  input_tokens  = 1024
  output_tokens = 64
}

workload "production" {
  mix = { chat = "90%", long = "10%" }
  load {
    concurrency = 8
  }
}
