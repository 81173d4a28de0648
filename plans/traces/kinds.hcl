# Limits for each kind of request: the log beside this file says by its route which is which.
# A part has limits, and request fields such as the model; when its requests are sent, and how
# long they are, the rows say.

server "demo" {
  endpoint { url = "http://127.0.0.1:8000" }
  simulator {}
}

workload "chat" {
  sla {
    ttft  = "p95 < 1s"
    speed = "mean > 20 tok/s"
  }
}

workload "rag" {
  sla {
    ttft = "p95 < 2s"
    e2e  = "p95 < 30s"
  }
}

workload "hour" {
  mix = { chat = "/v1/chat", rag = "/v1/rag" }
  load {
    trace   = "gateway-synthetic.csv"
    columns = { time = "ts", input = "prompt_tokens", output = "completion_tokens", session = "user", type = "route" }
    to      = "2m"
  }
}
