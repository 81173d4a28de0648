# A mix over a trace: its rows say by their type of which part they are, or the part is
# drawn. Parts have neither lengths nor loads.

server "vllm" {
  simulator {}
}

workload "chat" {
  request {
    temperature = 0
  }
  sla {
    ttft = "p95 < 2s"
  }
}

workload "rag" {
  request {
    model       = "adapter"
    temperature = 0
  }
  sla {
    at    = ["trace x2", "capacity"]
    speed = "mean > 20 tok/s"
  }
}

workload "hour" {
  mix = {
    chat = "/v1/chat"
    rag  = "/v1/rag"
  }
  load {
    trace   = "lib/trace-types.jsonl"
    columns = { time = "ts", input = "in", output = "out", type = "route" }
    speedup = [1, 2]
  }
  capacity {
    over  = "speedup"
    up_to = 4
  }
}

workload "drawn" {
  mix = {
    chat = "75%"
    rag  = "25%"
  }
  load {
    trace = "lib/trace.jsonl"
  }
}
