# A part of which no row of the stretch is, and more rounds than rows.

server "a" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "b" {
  endpoint { url = "http://127.0.0.1:8001" }
}

workload "chat" {
  sla { success = "every" }
}

workload "rag" {
  sla { success = "every" }
}

workload "hour" {
  server = server.a
  mix    = { chat = "/v1/chat", rag = "/v1/rag" }
  load {
    trace   = "lib/trace-types.jsonl" # ERROR: Too few requests
    columns = { time = "ts", input = "in", output = "out", type = "route" }
    from    = "4s"
    to      = "9s"
  }
}

workload "short" {
  load {
    trace = "lib/trace.jsonl"
  }
}

compare "upgrade" { # ERROR: Too few requests
  control   = server.a
  candidate = server.b
  tolerate { ttft = "mean +10%" }
}
