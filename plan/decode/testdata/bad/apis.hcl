# What an API does not have, or cannot force.
server "vllm" {
  engine = "vllm"
  endpoint { url = "http://localhost:8000" }
}

server "sglang" {
  engine = "sglang"
  endpoint { url = "http://localhost:30000" }
}

workload "forced" {
  server        = server.vllm
  api           = "messages"
  input_tokens  = 1024
  output_tokens = 128 # ERROR: Conflicting settings
  load { concurrency = [1] }
}

workload "forced-elsewhere" {
  api           = "responses"
  input_tokens  = 1024
  output_tokens = { mean = 128, jitter = "10%" } # ERROR: Conflicting settings
  load { concurrency = [1] }
}

workload "length" {
  api           = "embeddings"
  input_tokens  = 1024
  output_tokens = 128 # ERROR: Conflicting settings
  load { concurrency = [1] }
}

workload "bounds" {
  api          = "embeddings"
  inputs       = 16
  input_tokens = 512
  load { concurrency = [1] }
  sla {
    e2e        = "p95 < 2s"
    ttft       = "p95 < 2s"      # ERROR: Conflicting settings
    speed      = "mean > 10 tok/s" # ERROR: Conflicting settings
    throughput = "> 10 tok/s"    # ERROR: Conflicting settings
    empty      = "rate <= 1%"    # ERROR: Conflicting settings
  }
  good { ttfa = "< 2s" } # ERROR: Conflicting settings
}

workload "too-much" {
  preset       = "chatbot" # ERROR: Conflicting settings
  api          = "embeddings"
  inputs       = 3000 # ERROR: Value out of range
  input_tokens = 512
  load { concurrency = [1] }
  answers {} # ERROR: Conflicting settings
}

workload "talks" {
  api          = "embeddings"
  input_tokens = 512
  prompt {
    turns  = 3             # ERROR: Conflicting settings
    system = { tokens = 8 } # ERROR: Conflicting settings
  }
  load { users = [4] }
}

workload "chat" {
  inputs        = 4 # ERROR: Conflicting settings
  input_tokens  = 512
  output_tokens = 128
  load { concurrency = [1] }
}

workload "vectors" {
  api          = "embeddings"
  input_tokens = 512
}

workload "bare" {
  input_tokens  = 512
  output_tokens = 128
}

workload "mixed" {
  mix = { bare = "50%", vectors = "50%" } # ERROR: Conflicting settings
  load { concurrency = [4] }
}

compare "upgrade" {
  control   = server.vllm
  candidate = server.sglang
  changed   = ["engine"]
  answers {}
  tolerate {
    workloads       = [workload.bounds]
    e2e             = "mean +10%"
    ttft            = "mean +10%" # ERROR: Conflicting settings
    cosine_distance = "+0.1"      # ERROR: Invalid change
  }
}
