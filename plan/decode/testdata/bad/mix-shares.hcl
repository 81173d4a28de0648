# Loads whose requests cannot be shared out.

server "vllm" {
  simulator {}
}

workload "chat" {
  input_tokens  = 256
  output_tokens = 64
  sla {
    ttft = "p95 < 2s"
  }
}

workload "long" {
  input_tokens  = 1024
  output_tokens = 64
}

workload "timed" {
  mix = { chat = "90%", long = "10%" }
  load { # ERROR: Conflicting settings
    concurrency = 8
    duration    = "1m"
  }
}

workload "people" {
  mix = { chat = "90%", long = "10%" }
  load { # ERROR: Conflicting settings
    users = 8
  }
}
