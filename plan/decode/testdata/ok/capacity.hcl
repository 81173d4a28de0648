gate {
  budget = "100m"
}

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" {
  input_tokens  = 1024
  output_tokens = { mean = 128, jitter = "5%" }
  load { burst = 8 }
  load {
    concurrency = [1, 30]
    seeds       = [42, 123, 7, 8, 9]
    pause       = "1s"
  }
  sla {
    at   = [30, "capacity"]
    ttft = "p95 < 8s"
  }
  sla { speed = "p5 > 10 tok/s" }
  sla {
    at      = 1
    success = "every"
  }
  capacity {
    up_to        = 128
    from         = 2
    require      = 30
    resolution   = "5%"
    budget       = "40m"
    requests     = 300
    max_requests = 12000
    confirm      = false
  }
}

workload "queue" { # no load of its own
  preset = "rag"
  capacity {
    over       = "burst"
    up_to      = 256
    resolution = 4
    require    = 16
  }
}
