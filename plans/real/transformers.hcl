# transformers serve, for `make real`: the workloads of plans/interop, a gate and a search.
include = ["../interop/lib/workloads.hcl", "lib/gate.hcl"]

variable "model" {
  type        = string
  description = "The folder with the tiny model."
}

server "transformers" {
  model = var.model
  process {
    gpus      = 0
    command   = ["transformers", "serve", var.model, "--host", "127.0.0.1", "--port", "{port}"]
    served_as = var.model # /v1/models lists the download cache, not the served model
  }
  ready { timeout = "30m" }
}
