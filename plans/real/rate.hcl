# Finds how many requests a second llama.cpp's server carries, for `make real-rate`: saturation,
# probes and a certified rate, next to the server's own figures on its queue.

gate { measure_only = true }

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

workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 64, jitter = "50%" }
  sla {
    ttft  = "p95 < 500ms"
    speed = "mean > 1 tok/s"
  }
  capacity {
    over   = "rate"
    up_to  = "200 req/s"
    budget = "8m"
  }
}
