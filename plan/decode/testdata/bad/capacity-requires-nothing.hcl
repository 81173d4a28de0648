server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "measured" { # ERROR: Plan requires nothing
  input_tokens  = 1024
  output_tokens = 128
  sla {
    at   = ["capacity"]
    ttft = "p95 < 8s"
  }
  capacity { up_to = 64 }
}
