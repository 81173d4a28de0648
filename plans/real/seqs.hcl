# A candidate that is much worse, for `make real`: a vLLM that works on two requests at a time,
# against one that works on eight, with eight requests in flight.

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

server "vllm" {
  for_each = { eight = 8, two = 2 }
  engine   = "vllm"
  model    = var.model
  process { gpus = 0 }
  flags = {
    max-model-len = 4096
    max-num-seqs  = each.value
    enforce-eager = true
  }
  ready { timeout = "30m" }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = { mean = 32, jitter = "25%" }
  load {
    concurrency = 8
    requests    = 96 # in all rounds together, on each server
    timeout     = "5m"
  }
}

compare "seqs" {
  control   = server.vllm["eight"]
  candidate = server.vllm["two"]
  rounds    = 6
  restart   = "never"
  changed   = ["flags"]
  tolerate {
    ttft       = "mean +50%"
    throughput = "-20%"
  }
}
