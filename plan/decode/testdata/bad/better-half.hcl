# What the worse requests may miss: p95 of a speed is that of the fastest.
server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla {
    at    = 1
    ttft  = ["p95 < 2s", "p50 < 1s", "p5 < 500ms"]      # WARNING: Threshold on the best requests only
    speed = ["p5 > 10 tok/s", "p95 > 40 tok/s"]         # WARNING: Threshold on the best requests only
    e2e   = "min < 1s"                                  # WARNING: Threshold on the best requests only
  }
  sla {
    at    = 8
    speed = "max > 40 tok/s" # WARNING: Threshold on the best requests only
    itl   = "p99 < 100ms"
  }
}
