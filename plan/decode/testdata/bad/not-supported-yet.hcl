server "s" {
  endpoint { url = "http://127.0.0.1:8001" }
}

server "gateway" {
  endpoint {
    url      = "http://127.0.0.1:8000"
    replicas = 2 # ERROR: Not supported yet
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128

  load { concurrency = [1, 8] }
  sla {
    at          = ["capacity"]
    success = "every"
  }
  capacity {
    up_to   = 128
    require = 30
  }
}
