server "s" {
  simulator {}
}
workload "w" { # ERROR: Plan requires nothing
  input_tokens  = 10
  output_tokens = 10
  sla {
    ttft = "p95 < 2s"
  }
  capacity {
    over  = "rate"
    up_to = "40 req/s"
  }
}
