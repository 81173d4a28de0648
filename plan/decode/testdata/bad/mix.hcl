# What a mix cannot be.

server "vllm" {
  simulator {}
}

workload "chat" {
  input_tokens  = 256
  output_tokens = 64
  sla {
    at   = 8
    ttft = "p95 < 2s"
  }
  sla {
    at   = 9 # ERROR: Unknown level
    ttft = "p95 < 2s"
  }
}

workload "long" {
  input_tokens  = 1024
  output_tokens = 64
  load {
    concurrency = 2
  }
  sla {
    at   = 8 # ERROR: Unknown level
    ttft = "p95 < 2s"
  }
}

workload "people" {
  input_tokens  = 256
  output_tokens = 64
  prompt { # ERROR: Conflicting settings
    turns = 3
  }
}

workload "alone" { # ERROR: Workload has no load
  input_tokens  = 256
  output_tokens = 64
}

workload "production" {
  mix           = { chat = "70%", long = "30%" }
  input_tokens  = 256 # ERROR: Conflicting settings
  output_tokens = 64  # ERROR: Conflicting settings
  prompt {            # ERROR: Conflicting settings
    hit_rate = "50%"
  }
  request { # ERROR: Conflicting settings
    model = "adapter"
  }
  load {
    concurrency = 8
  }
}

workload "short" {
  mix = { chat = "70%", long = "25%" } # ERROR: Value out of range
  load {
    concurrency = 8
  }
}

workload "whole" {
  mix = { chat = "100%" } # ERROR: Value out of range
  load {
    concurrency = 8
  }
}

workload "unknown" {
  mix = { chat = "50%", lnog = "50%" } # ERROR: Undeclared reference
  load {
    concurrency = 8
  }
}

workload "itself" {
  mix = { chat = "50%", itself = "50%" } # ERROR: Conflicting settings
  load {
    concurrency = 8
  }
}

workload "nested" {
  mix = { chat = "50%", short = "50%" } # ERROR: Conflicting settings
  load {
    concurrency = 8
  }
}

workload "talking" {
  mix = { chat = "50%", people = "50%" }
  load {
    concurrency = 8
  }
}

workload "percent" {
  mix = { chat = "70", long = "30%" } # ERROR: Wrong type
  load {
    concurrency = 8
  }
}

workload "text" {
  mix = "70% chat" # ERROR: Wrong type
  load {
    concurrency = 8
  }
}

workload "no_load" { # ERROR: Workload has no load
  mix = { chat = "50%", long = "50%" }
}
