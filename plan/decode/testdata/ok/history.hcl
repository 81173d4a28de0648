history {
  folder = "perf/history"
  ignore = "2%"
}

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" {
  input_tokens  = 64
  output_tokens = 64
  load { concurrency = 4 }
  sla { ttft = "p95 < 2s" }
}
