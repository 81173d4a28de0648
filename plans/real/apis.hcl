# The same prompts through three APIs, at temperature 0, for `make real-apis`: do Responses and
# Messages give the tokens that chat gives?

variable "engine" {
  type        = string
  default     = "vllm"
  description = "The engine to start."
}

variable "model" {
  type        = string
  description = "The tiny model: a folder for vLLM, a GGUF file for llama.cpp."
}

locals {
  flags = {
    vllm        = { max-model-len = 4096, max-num-seqs = 8, enforce-eager = true, gpu-memory-utilization = 0.3 }
    "llama.cpp" = { parallel = 2, ctx-size = 8192, threads = 1, offline = true }
  }
}

server "s" {
  engine = var.engine
  model  = var.model
  process { gpus = 0 }
  flags = local.flags[var.engine]
  ready { timeout = "30m" }
}

workload "by" {
  for_each      = toset(["chat", "responses", "messages"])
  api           = each.value
  output_tokens = { natural = true, max = 128 }
  prompt {
    dataset = "lib/rows.jsonl"
    order   = "file"
  }
  request { temperature = 0 }
  answers {
    store     = "text"
    repeating = "allowed" # by random weights
  }
  load {
    concurrency = 2
    requests    = 20
    timeout     = "5m"
  }
  sla { success = "every" }
}
