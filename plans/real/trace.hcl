# A trace on a real prefix cache, for `make real`: a hundred requests like Mooncake's, cut to 4,096
# tokens. Blocks that were sent before should be in vLLM's cache.

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

server "vllm" {
  engine = "vllm"
  model  = var.model
  process { gpus = 0 }
  flags = {
    max-model-len                = 4096
    max-num-seqs                 = 8
    block-size                   = 128
    enable-prefix-caching        = true
    enable-prompt-tokens-details = true # so that usage reports cached tokens
    enforce-eager                = true
  }
  ready { timeout = "30m" }
}

workload "conversation" {
  load {
    trace    = "../traces/mooncake-synthetic.jsonl"
    to       = "59s"
    spread   = "3s"
    truncate = true
    timeout  = "5m"
  }
  sla {
    cache_hit_rate = "> 5%"
    e2e            = "mean < 60s"
  }
}
