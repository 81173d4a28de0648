# A change that should make no difference, for `make real`: vLLM with and without its
# prefix cache, on prompts that share at most their first two words.

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

server "vllm" {
  for_each = { on = true, off = false }
  engine   = "vllm"
  model    = var.model
  process { gpus = 0 }
  flags = {
    max-model-len         = 4096
    max-num-seqs          = 8
    enable-prefix-caching = each.value
    enforce-eager         = true
  }
  ready { timeout = "30m" }
}

workload "chat" {
  input_tokens  = 512
  output_tokens = { mean = 16, jitter = "25%" }
  load {
    concurrency = 4
    requests    = 96 # in all rounds together, on each server
    timeout     = "5m"
  }
}

compare "cache" {
  control   = server.vllm["on"]
  candidate = server.vllm["off"]
  rounds    = 6
  restart   = "never"
  changed   = ["flags"]
  tolerate {
    ttft = "mean +50%"
    e2e  = "mean +50%"
  }
}
