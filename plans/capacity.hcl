# How many requests in flight does this server carry? This plan searches for the
# largest number at which the thresholds still hold. On the built-in server it takes a
# minute or two. To search on your own server, replace the simulator:
#
#   endpoint { url = "http://127.0.0.1:8000" }

server "demo" {
  simulator {}
}

workload "chat" {
  description   = "Short questions, short answers, nothing cached"
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "25%" } # answers of one length would all end together

  sla {
    at   = "capacity"
    ttft = "p95 < 120ms"  # time to first token
    e2e  = "mean < 460ms" # measured: 437 ms at 16; a server whose prefill or decoding is slower by a quarter fails
  }

  capacity {
    from       = 8
    up_to      = 64
    resolution = 8  # largest distance between the last pass and the first failure
    require    = 16 # the gate fails below this
    budget     = "3m"
  }
}
