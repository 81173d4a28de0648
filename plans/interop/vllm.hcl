# vllm on the PATH: make interop MODEL=…
include = ["lib/workloads.hcl"]

variable "model" {
  type        = string
  description = "A Hugging Face id or a folder."
}

server "vllm" {
  engine = "vllm"
  model  = var.model
  process {}
  flags = {
    max-model-len = 16384
  }
}
