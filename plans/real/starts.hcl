# A comparison with a fresh vLLM for each leg, on a CPU: against itself, or with --var seqs=2 against one
# that works on two requests at a time. It wants an idle machine. On a shared one the CPU's speed wanders within
# seconds, so a leg is as long as a start: 40 s.

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

variable "seqs" {
  type        = number
  default     = 8
  description = "How many requests the candidate works on at a time."
}

server "vllm" {
  for_each = { control = 8, candidate = var.seqs }
  engine   = "vllm"
  model    = var.model
  process { gpus = 0 }
  flags = {
    max-model-len = 4096
    max-num-seqs  = each.value
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
    requests    = 12 * 1600 # on each: 1,600 in each of at most twelve rounds
    timeout     = "5m"
  }
}

compare "seqs" {
  control   = server.vllm["control"]
  candidate = server.vllm["candidate"]
  rounds    = 12
  changed   = ["flags"]
  tolerate {
    e2e  = "mean +15%"
    tpot = "mean +15%"
  }
}
