# Load for a prefix cache, on vLLM on a CPU, whose blocks have 128 tokens: prompts of which 80 %
# should be in the cache, conversations, and rows of a data set that are filled up to a length.

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
    enforce-eager                = true
    enable-prompt-tokens-details = true # so that usage reports cached tokens
  }
  ready { timeout = "30m" }
}

workload "hits" {
  input_tokens  = 1024
  output_tokens = 8
  prompt { hit_rate = "80%" }
  load {
    concurrency = 4
    requests    = 100
    seeds       = [1, 2, 3, 4, 5]
  }
  sla { success = "every" }
}

workload "assistant" {
  input_tokens  = 200
  output_tokens = { mean = 40, jitter = "50%" }
  prompt { turns = 3 }
  load {
    users      = 4
    think_time = { mean = "1s", cv = 1 }
    duration   = "40s"
  }
  sla { success = "every" }
}

workload "rows" {
  input_tokens  = 300
  output_tokens = 8
  prompt { dataset = "lib/rows.jsonl" }
  load {
    concurrency = 2
    requests    = 20
    seeds       = [1, 2, 3, 4, 5]
  }
  sla { success = "every" }
}

assert "hits" {
  condition     = abs(result.vllm.hits.level[4].cache_hit_rate - 0.8) <= 0.02
  error_message = "The server found more or less than 80 % of the prompts' tokens in its cache, by more than two points."
}
