# A part that no request of a level is of.

server "vllm" {
  simulator {}
}

workload "chat" {
  input_tokens  = 256
  output_tokens = 64
  sla {
    ttft = "mean < 2s"
  }
}

workload "long" {
  input_tokens  = 1024
  output_tokens = 64
}

workload "production" {
  mix = { chat = "99%", long = "1%" }
  load {
    concurrency = 1 # ERROR: Too few requests
    requests    = 20
  }
}

workload "searched" {
  mix = { long = "50%", chat = "50%" }
  load {
    concurrency = 1
    requests    = 20
  }
  capacity {
    up_to = 8
  }
}
