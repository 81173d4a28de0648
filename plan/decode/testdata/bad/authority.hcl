server "missing" {
  endpoint {
    url     = "https://127.0.0.1:8000"
    ca_file = "lib/absent.pem" # ERROR: Invalid certificate authority
  }
}

server "elsewhere" {
  endpoint {
    url     = "https://127.0.0.1:8000"
    ca_file = "/nonexistent/ca.pem" # WARNING: Invalid certificate authority
  }
}

server "no-certificate" {
  endpoint {
    url     = "https://127.0.0.1:8000"
    ca_file = "authority.hcl" # ERROR: Invalid certificate authority
    h2c     = 2               # ERROR: Wrong type
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
