server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "none" {
  input_tokens  = 64
  output_tokens = 64
  capacity { # ERROR: Missing setting
    over  = "speedup"
    up_to = 8
  }
  sla { success = "every" }
}

workload "values" {
  load { trace = "lib/trace.jsonl" }
  capacity {
    over       = "speedup"
    up_to      = "8x" # ERROR: Wrong type
    from       = 0    # ERROR: Value out of range
    resolution = 2    # ERROR: Wrong type
    requests   = 300  # ERROR: Conflicting settings
  }
  sla { success = "every" }
}
