# vLLM in a container on one GPU: does it serve a chat of 30 people at a time well?
# tokgate pulls the image, takes a free GPU, checks that the server is the declared
# one, and leaves nothing behind.
#
#   tokgate run plans/gpu/vllm.hcl --var image=vllm/vllm-openai:v0.19.1
#   tokgate run --simulate plans/gpu/vllm.hcl        # without a GPU

gate {
  budget          = "100m" # less than the job's time-out, which includes start and teardown
  on_inconclusive = "extend"
}

variable "image" {
  type        = string
  default     = "vllm/vllm-openai:v0.19.1"
  description = "The image under test, by tag or digest."
}

variable "models" {
  type        = string
  default     = "/data/hf"
  description = "Where downloaded models are kept on this machine."
}

server "vllm" {
  engine = "vllm"
  model  = "Qwen/Qwen3.6-35B-A3B-FP8"

  container {
    image   = var.image
    gpus    = 1
    volumes = ["compiled-vllm:/root/.cache", "${var.models}:/root/.cache/huggingface"] # weights and compiled kernels are kept
    env     = { HF_TOKEN = env.HF_TOKEN }
  }
  simulator { profile = "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000" }

  flags = {
    max-model-len          = 65536
    gpu-memory-utilization = 0.9
    max-num-seqs           = 128
    speculative-config     = { method = "qwen3_next_mtp", num_speculative_tokens = 2 }
  }
  ready { timeout = "20m" }
  expect {
    gpu = "1 x RTX PRO 6000"
  }
}

workload "chat" {
  description   = "ChatGPT-style chat, nothing cached"
  input_tokens  = 2048
  output_tokens = { mean = 256, jitter = "10%" }

  load {
    concurrency = [1, 30]
    requests    = { 1 = 20, default = 300 }
  }

  sla {
    at    = 30
    ttft  = "p95 < 5s"
    speed = "mean > 15 tok/s"
  }
}
