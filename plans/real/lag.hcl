# Short answers of the built-in server over sockets, for `make lag`. It shows how late requests are
# sent, and TTFT next to the server's own TTFT, in a closed loop and at rates.

variable "url" {
  type        = string
  description = "Where the built-in server listens."
}

server "sim" {
  endpoint { url = var.url }
}

workload "closed" {
  input_tokens  = 16
  output_tokens = 4
  load {
    concurrency = [8]
    requests    = 4000
  }
  sla {
    ttft  = "mean < 1s"
    speed = "mean > 1 tok/s"
  }
}

workload "rate" {
  input_tokens  = 16
  output_tokens = 4
  load {
    rate          = ["200 req/s"]
    duration      = "30s"
    max_in_flight = 512
  }
  sla {
    lag   = "p99 < 1ms"
    ttft  = "mean < 1s"
    speed = "mean > 1 tok/s"
  }
}

# More than two cores can send: the run must be invalid, and not blame the server.
workload "flood" {
  input_tokens  = 16
  output_tokens = 4
  load {
    rate          = ["2000 req/s"]
    duration      = "10s"
    max_in_flight = 1024
  }
  sla {
    ttft  = "mean < 5s"
    speed = "mean > 1 tok/s"
  }
}
