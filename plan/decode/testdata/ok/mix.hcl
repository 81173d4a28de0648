# A mix of three workloads: two of them are there only as parts, one runs alone too.

server "vllm" {
  simulator {}
}

workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 64, jitter = "50%" }
  sla {
    ttft = "p95 < 2s"
  }
  sla {
    at    = ["8", "capacity"]
    speed = "mean > 20 tok/s"
  }
}

workload "rag" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    shared_prefix = { tokens = 512, groups = 4 }
  }
  request {
    model       = "adapter"
    temperature = 0
  }
  load {
    concurrency = [1, 8]
  }
  sla {
    at   = 1
    ttft = "p95 < 1s"
  }
  sla {
    ttft = "p95 < 3s"
  }
}

workload "long" {
  preset       = "long_document"
  input_tokens = 4096
}

workload "production" {
  mix = {
    chat = "70%"
    rag  = 0.25
    long = "5%"
  }
  load {
    concurrency = [4, 8]
    requests    = 1200
    seeds       = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
  }
  load {
    rate     = "4 req/s"
    duration = "20m"
  }
  capacity {
    up_to = 32
  }
  sla {
    throughput = "> 10 tok/s"
  }
}
