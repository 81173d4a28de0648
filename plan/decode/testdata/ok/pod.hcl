server "old" {
  engine = "vllm"
  model  = "Qwen/Qwen3-8B"
  pod {
    image     = "vllm/vllm-openai:v0.19.0"
    gpus      = 1
    template  = "lib/pod.yaml"
    namespace = "gates"
    env       = { HF_TOKEN = env.HF_TOKEN }
  }
  flags = { max-num-seqs = 64 }
}

server "new" {
  engine = "vllm"
  model  = "Qwen/Qwen3-8B"
  pod {
    image        = "vllm/vllm-openai:v0.19.1"
    gpus         = 1
    gpu_resource = "amd.com/gpu"
    template     = "lib/pod.yaml"
    namespace    = "gates"
  }
  flags = { max-num-seqs = 64 }
}

server "plain" {
  pod {
    image          = "registry.example.com/engine:v1"
    entrypoint     = "/engine"
    command        = ["--port", "{port}"]
    container_port = 9000
    served_as      = "m"
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = 8 }
  sla { ttft = "p95 < 1s" }
}

compare "upgrade" {
  control      = server.old
  candidate    = server.new
  changed      = ["image", "gpu_resource", "env.HF_TOKEN"]
  side_by_side = true
  tolerate { ttft = "p95 +5%" }
}
