# Four servers behind one gateway, for `make real ENGINES=gateways`.

variable "url" {
  type        = string
  description = "The gateway."
}
variable "replicas" {
  type        = list(object({ url = string }))
  default     = []
  description = "The servers behind it; none to measure a server without a gateway."
}
variable "ca_file" {
  type        = string
  default     = ""
  description = "The certificate of a gateway with TLS."
}

server "gateway" {
  engine = "vllm"
  endpoint {
    url            = var.url
    replicas       = length(var.replicas) > 0 ? var.replicas : null
    ca_file        = var.ca_file != "" ? var.ca_file : null
    session_header = "x-session-id"
    served_as      = "tokgate-sim" # SGLang's router does not list it
  }
}

# Every token of a burst arrives, so what the replicas counted must be what the client received.
workload "sum" {
  input_tokens  = 64
  output_tokens = { mean = 16, jitter = "50%" }
  load {
    burst = 40
    seeds = [1, 2, 3]
  }
  sla {
    success   = "every"
    imbalance = length(var.replicas) > 1 ? "< 2" : null
  }
}

workload "closed" {
  input_tokens  = 256
  output_tokens = { mean = 32, jitter = "25%" }
  load {
    concurrency = 8
    requests    = 160
  }
  sla {
    success = "every"
    ttft    = "mean < 500ms"
    speed   = "mean > 20 tok/s"
  }
}
