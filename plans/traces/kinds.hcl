# Sets limits for each kind of request. In the log next to this file, the field route says of
# which kind a request is. A part of the mix has limits, and request fields such as the model.
# The log's rows say when requests are sent, and how long they are.

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
