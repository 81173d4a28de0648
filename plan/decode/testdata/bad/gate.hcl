gate {
  confidence      = 95        # ERROR: Value out of range
  decide          = "certain" # ERROR: Unknown choice
  on_inconclusive = "pass"    # ERROR: Unknown choice
  window          = "ramp"    # ERROR: Unknown choice
  max_requests    = 0         # ERROR: Value out of range
  budget          = "1ms"     # ERROR: Value out of range
  measure_only    = "yes"     # ERROR: Wrong type
  must_detect     = { decode = "25%" } # ERROR: Value out of range
}

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}
workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { # ERROR: Conflicting settings
    concurrency = [1, 8]
  }
  sla { success = "every" }
  gate {
    confidence      = 0.5 # ERROR: Value out of range
    on_inconclusive = "extend"
    max_requests    = 50
  }
}
