server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}
workload "w" { # ERROR: Plan requires nothing
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla {
    severity = "warn"
    success  = "every"
  }
}
