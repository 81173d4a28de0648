# vllm on the PATH: make interop MODEL=…
include = ["lib/workloads.hcl"]

variable "model" {
  type        = string
  description = "A Hugging Face id or a folder."
}

server "vllm" {
  engine = "vllm"
  model  = var.model
  process {
    command = ["vllm", "serve", var.model, "--host", "127.0.0.1", "--port", "{port}"]
  }
  flags = {
    max-model-len = 16384
  }
}
