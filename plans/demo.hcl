# `make demo` runs this plan: a gate on the built-in server, in less than half a
# minute. That is too short to see rare problems, as `tokgate validate` says: a real
# gate has a duration, such as "2m", instead of requests. To gate your own server,
# replace the simulator:
#
#   endpoint { url = "http://127.0.0.1:8000" }
#
# The thresholds leave room for any machine, even a busy one. So this gate does not
# notice a server that is slower by a quarter, as `tokgate strength` says. The other
# gates in this folder do.

server "demo" {
  simulator {}
}

workload "chat" {
  description   = "Short questions, short answers, nothing cached"
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "50%" } # answers of one length would all end together

  load {
    concurrency = [1, 4, 8]                 # closed loop: the number of requests in flight
    requests    = { 1 = 20, default = 150 } # measured, per level
  }

  sla {
    at    = [4, 8]
    ttft  = "p95 < 2s"        # time to first token
    speed = "mean > 40 tok/s" # the speed at which one user's text streams
    e2e   = "mean < 1s"
  }
}
