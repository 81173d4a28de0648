# llama.cpp's server, for `make real`: the workloads of plans/interop, a gate and a search.
include = ["../interop/lib/workloads.hcl", "lib/gate.hcl"]

variable "model" {
  type        = string
  description = "The tiny model as a GGUF file."
}

server "llama_cpp" {
  engine = "llama.cpp"
  model  = var.model
  process { gpus = 0 }
  flags = {
    parallel = 8
    ctx-size = 131072
    threads  = 1
    offline  = true
  }
}
