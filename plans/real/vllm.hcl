# vLLM on a CPU, for `make real`: the workloads of plans/interop, a gate and a search.
include = ["../interop/lib/workloads.hcl", "lib/gate.hcl"]

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

server "vllm" {
  engine = "vllm"
  model  = var.model
  process { gpus = 0 }
  flags = {
    max-model-len = 16384
    max-num-seqs  = 8
    enforce-eager = true # nothing is compiled, so that it starts in a minute

    gpu-memory-utilization = 0.3 # of the machine's memory: other work may run beside it
  }
  ready { timeout = "30m" } # long, because other work may run beside it
}
