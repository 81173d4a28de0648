# Embeddings of a real engine, for `make real-apis`: one text and sixteen in a request, and the
# vectors of two servers that are alike.

variable "engine" {
  type        = string
  default     = "vllm"
  description = "The engine to start."
}

variable "model" {
  type        = string
  description = "The embedding model: a folder for vLLM, a GGUF file for llama.cpp."
}

locals {
  flags = {
    # With bfloat16 vLLM 0.32 on a CPU dies of a first input of three tokens.
    vllm        = { runner = "pooling", convert = "embed", dtype = "float32", max-model-len = 4096, max-num-seqs = 8, enforce-eager = true, gpu-memory-utilization = 0.3 }
    "llama.cpp" = { embeddings = true, pooling = "mean", ubatch-size = 2048, parallel = 2, ctx-size = 8192, threads = 1, offline = true }
  }
}

server "s" {
  for_each = toset(["control", "again"])
  engine   = var.engine
  model    = var.model
  process { gpus = 0 }
  flags = local.flags[var.engine]
  ready { timeout = "30m" }
}

workload "one" {
  api          = "embeddings"
  input_tokens = 1024
  load {
    concurrency = 4
    requests    = 40
    timeout     = "5m"
  }
  sla { success = "every" }
}

workload "sixteen" {
  api          = "embeddings"
  inputs       = 16
  input_tokens = 64
  load {
    concurrency = 4
    requests    = 40
    timeout     = "5m"
  }
  sla { success = "every" }
}

compare "alike" {
  control   = server.s["control"]
  candidate = server.s["again"]
  restart   = "never"
  rounds    = 5
  answers { prompts = 100 }
}
