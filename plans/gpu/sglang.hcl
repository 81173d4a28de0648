# SGLang in a container on two named GPUs, with shared memory for its workers.
# tokgate switches its metrics on, unless the plan says otherwise.
#
#   tokgate run plans/gpu/sglang.hcl --var 'gpus=["2", "3"]'
#   tokgate run --simulate plans/gpu/sglang.hcl      # without a GPU

variable "gpus" {
  type        = list(string)
  default     = ["0", "1"]
  description = "Which GPUs, by index or UUID as nvidia-smi prints them."
}

server "sglang" {
  engine = "sglang"
  model  = "Qwen/Qwen3-Coder-Next-80B-A3B-Instruct-FP8"

  container {
    image    = "lmsysorg/sglang:v0.5.9"
    gpus     = var.gpus
    shm_size = "32g"
    volumes  = ["compiled-sglang:/root/.cache", "huggingface:/root/.cache/huggingface"] # named volumes of the container runtime
  }
  simulator { profile = "qwen3-coder-next-80b-fp8.2x-rtx-pro-6000" }

  flags = {
    tp                   = length(var.gpus)
    context-length       = 131072
    max-running-requests = 64
  }
}

workload "code" {
  input_tokens  = 8192
  output_tokens = { mean = 200, jitter = "10%" }

  load {
    concurrency = 4
    requests    = 200
  }

  sla {
    ttft  = "p95 < 8s"
    speed = "mean > 15 tok/s"
  }
}
