server "half" {
  endpoint {
    url       = "https://127.0.0.1:8000"
    cert_file = "lib/client.pem" # ERROR: Missing setting
  }
}

server "absent" {
  endpoint {
    url       = "https://127.0.0.1:8000"
    cert_file = "lib/client.pem" # ERROR: Unusable client certificate
    key_file  = "lib/client.key"
  }
}

server "no-certificate" {
  endpoint {
    url       = "https://127.0.0.1:8000"
    cert_file = "endpoint.hcl" # ERROR: Unusable client certificate
    key_file  = "endpoint.hcl"
  }
}

server "elsewhere" {
  endpoint {
    url       = "https://127.0.0.1:8000"
    cert_file = "/etc/hostname" # ERROR: Unusable client certificate
    key_file  = "/etc/hostname"
  }
}

server "anywhere" {
  endpoint {
    url       = "https://127.0.0.1:8000"
    redirects = "any"
    cert_file = "lib/client.pem" # ERROR: Conflicting settings
    key_file  = "lib/client.key"
  }
}

server "taken" {
  endpoint {
    url            = "http://127.0.0.1:8000"
    session_header = "authorization" # ERROR: Value out of range
  }
}

server "spaced" {
  endpoint {
    url            = "http://127.0.0.1:8000"
    session_header = "x session" # ERROR: Value out of range
  }
}

server "twice" {
  endpoint {
    url            = "http://127.0.0.1:8000"
    headers        = { X-Session-Id = "one" }
    session_header = "x-session-id" # ERROR: Value out of range
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
