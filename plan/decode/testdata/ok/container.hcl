variable "image" {
  type    = string
  default = "vllm/vllm-openai:v0.19.1"
}

server "vllm" {
  engine = "vllm"
  model  = "Qwen/Qwen3.6-35B-A3B-FP8"
  container {
    image   = var.image
    gpus    = 1
    volumes = ["/data/hf:/root/.cache/huggingface:ro", "./chat.jinja:/chat.jinja:ro", "cache:/root/.cache/vllm"]
    env     = { HF_TOKEN = env.HF_TOKEN }
  }
  flags = {
    max-model-len = 131072
    max-num-seqs  = 64
    chat-template = "/chat.jinja"
  }
}

server "sglang" {
  engine = "sglang"
  model  = "Qwen/Qwen3-8B"
  container {
    image   = "lmsysorg/sglang:v0.5.9"
    runtime = "podman"
    pull    = "never"
    gpus    = ["2", 3]
    options = ["--ipc", "host"]
    user    = "1000:1000"
    port    = 9000
  }
  flags = { port = 31000 }
}

server "llama" {
  engine = "llama.cpp"
  container {
    image   = "ghcr.io/ggml-org/llama.cpp@sha256:0123"
    network = "host"
    gpus    = "all"
  }
  flags = {
    hf-repo = "ggml-org/Qwen3-8B-GGUF:Q8_0"
    metrics = null
  }
}

server "other" {
  container {
    image      = "registry.example.com:5000/gateway"
    command    = ["--listen", "0.0.0.0:{port}"]
    entrypoint = "/gateway"
    shm_size   = "1g"
  }
}

server "process" {
  engine = "llama.cpp"
  model  = "models/tiny.gguf"
  process {
    gpus = 0
  }
  flags = { parallel = 8 }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
