# A server that is already running: make interop URL=http://127.0.0.1:8000 ENGINE=vllm
include = ["lib/workloads.hcl"]

variable "url" {
  type        = string
  description = "Where it is, with or without /v1."
}
variable "engine" {
  type        = string
  default     = "openai"
  description = "Whose request fields it takes: vllm, sglang, llama.cpp or openai."
}
variable "api_key" {
  type      = string
  default   = ""
  sensitive = true
}
variable "served_as" {
  type        = string
  default     = ""
  description = "The model id to send, when the server lists several or none."
}

server "endpoint" {
  engine = var.engine
  endpoint {
    url       = var.url
    api_key   = var.api_key
    served_as = var.served_as
  }
}
