# A load that another client can send too, so that the figures of both can be compared with the
# server's own histograms. After this plan, `make real` sends the load with `vllm bench serve`.

variable "url" {
  type        = string
  description = "A vLLM that runs."
}
variable "in_flight" {
  type        = number
  description = "Requests at a time."
}
variable "requests" {
  type        = number
  description = "How many, without those that keep the load up."
}

gate {
  measure_only = true
}

server "vllm" {
  engine = "vllm"
  endpoint { url = var.url }
}

workload "load" {
  input_tokens  = 256
  output_tokens = 64
  load {
    concurrency = var.in_flight
    requests    = var.requests
    seeds       = [1, 2]
    warmup      = 0
    timeout     = "5m"
  }
}
