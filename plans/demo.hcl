# The plan that `make demo` runs: a gate on the built-in server, in less than
# half a minute, which is too short for what comes seldom (`tokgate validate` says
# so): a gate has a duration, such as "2m", in place of requests. To gate a server of
# yours, replace the simulator:
#
#   endpoint { url = "http://127.0.0.1:8000" }
#
# Its thresholds leave room for whatever machine it is tried on, a busy one too. So it
# does not notice a server that is slower by a quarter, as `tokgate strength` says and
# as the gates beside it do.

server "demo" {
  simulator {}
}

workload "chat" {
  description   = "Short questions, short answers, nothing cached"
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "10%" } # equal lengths keep the slots in lock-step

  load {
    concurrency = [1, 4, 8]                 # closed loop: that many requests in flight
    requests    = { 1 = 20, default = 150 } # measured, per level
  }

  sla {
    at    = [4, 8]
    ttft  = "p95 < 2s"        # time to first token
    speed = "mean > 40 tok/s" # the speed at which one user's text streams
    e2e   = "mean < 1s"
  }
}
