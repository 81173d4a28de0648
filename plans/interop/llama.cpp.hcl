# llama-server on the PATH: make interop MODEL=…
include = ["lib/workloads.hcl"]

variable "model" {
  type        = string
  description = "A GGUF file."
}

server "llama_cpp" {
  engine = "llama.cpp"
  model  = var.model
  process {}
  flags = {
    parallel = 8
    ctx-size = 131072
    offline  = true
  }
}
