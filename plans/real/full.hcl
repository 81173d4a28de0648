# A KV cache that is too small for the load, for `make real`: 20 blocks of 128 tokens for
# eight requests of up to 512 tokens. The gate fails, and says why.

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

server "vllm" {
  engine = "vllm"
  model  = var.model
  process { gpus = 0 }
  flags = {
    max-model-len           = 2048
    max-num-seqs            = 8
    num-gpu-blocks-override = 20
    enforce-eager           = true
  }
  ready { timeout = "30m" }
}

workload "chat" {
  input_tokens  = 256
  output_tokens = 256
  load {
    concurrency = 8
    requests    = 48
    seeds       = [1, 2]
    timeout     = "5m"
  }
  sla {
    success     = "every"
    kv_usage    = "max < 90%"
    preemptions = "< 1"
  }
}
