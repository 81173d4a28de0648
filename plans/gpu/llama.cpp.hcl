# llama.cpp's server in a podman container, on all GPUs of the machine. With gpus = 0
# and an image without CUDA it runs on the CPU.
#
#   tokgate run plans/gpu/llama.cpp.hcl --var models=$HOME/models
#   tokgate run --simulate plans/gpu/llama.cpp.hcl   # without a GPU

variable "models" {
  type        = string
  default     = "./models"
  description = "The folder with the GGUF file."
}

server "llama" {
  engine = "llama.cpp"
  model  = "/models/qwen3.5-35b-a3b.gguf"

  container {
    image   = "ghcr.io/ggml-org/llama.cpp:server-cuda"
    runtime = "podman"
    gpus    = "all"
    volumes = ["${var.models}:/models:ro"]
  }
  simulator {}

  flags = {
    parallel = 8
    ctx-size = 131072
  }
}

workload "chat" {
  input_tokens  = 1024
  output_tokens = { mean = 128, jitter = "10%" }

  load {
    concurrency = 8
    requests    = 200
  }

  sla {
    ttft  = "p95 < 5s"
    speed = "mean > 5 tok/s"
  }
}
