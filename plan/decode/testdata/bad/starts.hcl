server "a" {
  engine = "vllm"
  process { command = ["serve", "{port}"] }
}

server "b" {
  engine = "vllm"
  process { command = ["serve", "{port}"] }
}

server "e" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "f" {
  endpoint { url = "http://127.0.0.1:8001" }
}

workload "chat" {
  server        = [server.a, server.b]
  input_tokens  = 64
  output_tokens = 8
  load { concurrency = [1, 8] }
  sla {
    start_warm = ["max < 5m", "p95 < 3m"] # ERROR: Statistic not allowed
    start_cold = ["mean < 9m", "< 9m"]    # ERROR: Statistic not allowed # ERROR: Missing statistic
  }
}

workload "elsewhere" {
  server        = [server.e, server.f]
  input_tokens  = 64
  output_tokens = 8
  load { concurrency = 8 }
  sla { start_warm = "max < 5m" } # ERROR: Conflicting settings
}

compare "short" {
  control   = server.a
  candidate = server.b
  rounds    = 3
  tolerate {
    start_cold = "mean +10%" # ERROR: Statistic not allowed
    start_warm = "mean +10%" # ERROR: Value out of range
  }
}

compare "endpoints" {
  control   = server.e
  candidate = server.f
  tolerate { start_warm = "mean +10%" } # ERROR: Conflicting settings
}
