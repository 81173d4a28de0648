# A gate on the answers of a real engine, for `make real-answers`. Two vLLM servers serve the model
# of `make tinymodel`, or a damaged version of it. Both are already running, so the verdict covers
# only these two starts.

variable "url" {
  type        = string
  description = "Where the model answers as it was taught."
}

variable "candidate" {
  type        = string
  default     = ""
  description = "Where it may not; the control itself where it is empty."
}

variable "prompts" {
  type        = number
  default     = 200
  description = "Prompts whose answers the control reads."
}

variable "items" {
  type        = number
  default     = 20
  description = "Items of recall of each round."
}

server "today" {
  engine = "vllm"
  endpoint { url = var.url }
}

server "next" {
  engine = "vllm"
  endpoint { url = var.candidate == "" ? var.url : var.candidate }
}

workload "recall" {
  prompt { dataset = "builtin:recall" }
  input_tokens  = 512
  output_tokens = { natural = true, max = 16 }
  request { temperature = 0 } # without it vLLM draws each token by chance
  load {
    concurrency = 4
    requests    = 5 * var.items
    warmup      = 0 # speed is not judged
    timeout     = "5m"
  }
}

workload "begins" {
  description   = "With which words the prompt begins"
  input_tokens  = 192
  output_tokens = { natural = true, max = 64 }
  request { temperature = 0 }
  load {
    concurrency = 4
    requests    = 5 * 4
    warmup      = 0
    timeout     = "5m"
  }
}

compare "answers" {
  control   = server.today
  candidate = server.next
  changed   = ["model"]
  rounds    = 5
  restart   = "never"
  answers { prompts = var.prompts }
  tolerate {
    workloads = workload.recall
    accuracy  = "rate -10pp"
  }
}
