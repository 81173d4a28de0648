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

server "nowhere" {
  endpoint { # ERROR: Missing setting
    api_key = "k"
  }
}

server "both" {
  endpoint {
    url  = "http://127.0.0.1:8000" # ERROR: Conflicting settings
    urls = ["http://127.0.0.1:8001"]
  }
}

server "repeated" {
  endpoint {
    urls = ["http://127.0.0.1:8000", "http://127.0.0.1:8000"] # ERROR: Conflicting settings
  }
}

server "no-front" {
  endpoint {
    urls = [] # ERROR: Missing setting
  }
}

server "no-front-url" {
  endpoint {
    urls = ["127.0.0.1:8000"] # ERROR: Invalid URL
  }
}

server "a-number" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = 4 # ERROR: Wrong type
  }
}

server "no-replica" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = [] # ERROR: Missing setting
  }
}

server "replica-without-a-url" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = [{ headers = { X-Team = "a" } }] # ERROR: Missing setting
  }
}

server "replica-with-a-key" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = [{ url = "http://10.0.0.1:8000", key = "a" }] # ERROR: Unknown choice
  }
}

server "replica-twice" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = [{ url = "http://10.0.0.1:8000" }, { url = "http://10.0.0.1:8000" }] # ERROR: Conflicting settings
  }
}

server "replica-is-the-gateway" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = [{ url = "http://127.0.0.1:8000" }] # ERROR: Conflicting settings
  }
}

server "replica-header" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = [{ url = "http://10.0.0.1:8000", headers = { "X Team" = "a" } }] # ERROR: Value out of range
  }
}

server "pages-of-both" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = [{ url = "http://10.0.0.1:8000" }]
  }
  telemetry {
    metrics_url = "http://10.0.0.1:8000/metrics" # ERROR: Conflicting settings
  }
}
