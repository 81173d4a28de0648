# Which of several flags' values made a vLLM slow? For `tokgate bisect` on a real engine: with 2
# requests at a time it is much slower than with 8, at eight requests in flight.
# Bisect the variable seqs with the values 8 9 10 11 12 2 2 2, one a line: e2e mean at chat/8, claimed +50%.

gate { measure_only = true }

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

variable "seqs" {
  type        = number
  default     = 8
  description = "How many requests the engine works on at a time."
}

server "vllm" {
  engine = "vllm"
  model  = var.model
  process { gpus = 0 }
  flags = {
    max-model-len = 4096
    max-num-seqs  = var.seqs
    enforce-eager = true

    gpu-memory-utilization = 0.2 # of the machine's memory: other work may run beside it
  }
  ready { timeout = "30m" }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = { mean = 32, jitter = "25%" }
  load {
    concurrency = 8
    requests    = 40
    timeout     = "5m"
  }
}
