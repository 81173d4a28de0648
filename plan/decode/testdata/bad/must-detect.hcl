gate {
  must_detect = { decoding = "+25%", prefill = "+25%" } # ERROR: Unknown choice
}

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}
workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = 1
  }
  sla { success = "every" }
}
