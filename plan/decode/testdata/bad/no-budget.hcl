# Nothing bounds how long a server that never answers is waited for.

server "local" {
  endpoint {
    url = "http://127.0.0.1:8000"
  }
}

workload "chat" { # WARNING: No time limit
  input_tokens  = 256
  output_tokens = 64

  # 20 requests one after another, or 10 pairs, of 20 minutes each: 20 h × 1/3 + 10 h × 1/3.
  load {
    concurrency = [1, 2]
    timeout     = "20m"
  }

  sla {
    ttft = "p95 < 2s"
  }
}
