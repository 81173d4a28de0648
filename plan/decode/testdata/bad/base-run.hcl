# RUN
server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" {
  input_tokens  = 128
  output_tokens = 16
  load { concurrency = 8 }
  sla { ttft = "p95 < 8s" }
}

compare "branch" {
  control   = base.server.s # ERROR: No plan on the base branch
  candidate = server.s
  tolerate { ttft = "p95 +10%" }
}
