# The load that `make peers` sends to the built-in server, with tokgate and with other load
# generators: a closed loop of 64 streams, or 512 requests at once.

gate {
  decide = "estimate" # the verdict does not matter here
}

variable "url" {
  type        = string
  description = "Where the built-in server listens."
}

variable "requests" {
  type        = number
  default     = 640
  description = "Of the closed loop."
}

server "sim" {
  endpoint { url = var.url }
}

workload "steady" {
  input_tokens  = 200
  output_tokens = 64
  load {
    concurrency = 64
    requests    = var.requests
    warmup      = 0
    seeds       = [1]
  }
  sla { ttft = "mean < 10s" }
}

workload "burst" {
  input_tokens  = 200
  output_tokens = 64
  load {
    burst  = 512
    bursts = 1
    warmup = 0
  }
  sla { ttft = "mean < 10s" }
}
