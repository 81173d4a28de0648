# sglang on the PATH: make interop MODEL=…
include = ["lib/workloads.hcl"]

variable "model" {
  type        = string
  description = "A Hugging Face id or a folder."
}

server "sglang" {
  engine = "sglang"
  model  = var.model
  process {}
  flags = {
    context-length = 16384
  }
}
