# A gate on answers on a real engine: the model of `make tinymodel` against itself, or against what
# plans/real/spoil.py made of it.
#
#   tokgate run plans/real/lib/answers.hcl --var model=DIR/taught --var next=DIR/int4

variable "model" {
  type        = string
  description = "The folder with the model that was taught."
}

variable "next" {
  type        = string
  default     = ""
  description = "The candidate's model; the control's where it is empty."
}

variable "flags" {
  type        = map(string)
  default     = {}
  description = "Further flags of the candidate."
}

locals {
  flags = {
    served-model-name = "taught"
    dtype             = "float32"
    max-model-len     = "1024"
    max-num-seqs      = "8"
    enforce-eager     = "true"
  }
}

server "today" {
  engine = "vllm"
  model  = var.model
  process { gpus = 0 }
  flags = local.flags
  ready { timeout = "30m" } # beside other work
}

server "next" {
  engine = "vllm"
  model  = var.next == "" ? var.model : var.next
  process { gpus = 0 }
  flags = merge(local.flags, var.flags)
  ready { timeout = "30m" }
}

workload "recall" {
  prompt { dataset = "builtin:recall" }
  input_tokens  = 512
  output_tokens = { natural = true, max = 16 }
  load {
    concurrency = 4
    requests    = 8 * 40
    timeout     = "5m"
  }
}

workload "begins" {
  description   = "With which words the prompt begins"
  input_tokens  = 192
  output_tokens = { natural = true, max = 32 }
  load {
    concurrency = 4
    requests    = 8 * 8
    timeout     = "5m"
  }
}

compare "answers" {
  control   = server.today
  candidate = server.next
  changed   = ["model", "flags"]
  restart   = "never"
  answers { prompts = 200 }
  tolerate {
    workloads = [workload.recall]
    accuracy  = "rate -5pp"
  }
}
