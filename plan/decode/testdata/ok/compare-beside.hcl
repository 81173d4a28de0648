server "today" {
  engine = "vllm"
  model  = "Qwen/Qwen3-8B"
  container {
    image = "vllm/vllm-openai:v0.19.1"
    gpus  = ["0", "1"]
  }
}

server "next" {
  engine = "vllm"
  model  = "Qwen/Qwen3-8B"
  container {
    image = "vllm/vllm-openai:v0.20.0"
    gpus  = ["2", "3"]
  }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = 16
  load { concurrency = 4 }
  sla { ttft = "p95 < 8s" }
}

compare "upgrade" {
  control      = server.today
  candidate    = server.next
  side_by_side = true
  changed      = ["image"]
  tolerate { ttft = "p95 +10%" }
}
