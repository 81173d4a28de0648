# transformers on the PATH (transformers[serving] and torch): make interop MODEL=…
include = ["lib/workloads.hcl"]

variable "model" {
  type        = string
  description = "A Hugging Face id or a folder."
}

server "transformers" {
  model = var.model
  process {
    command   = ["transformers", "serve", var.model, "--host", "127.0.0.1", "--port", "{port}"]
    served_as = var.model # /v1/models lists the download cache, not the served model
  }
}
