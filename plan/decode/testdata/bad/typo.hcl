# Every name that the schema knows is suggested.
gate {
  bugdet = "10m" # ERROR: Unsupported argument
}

sever "s" { # ERROR: Unsupported block type
}

server "s" {
  engin = "vllm" # ERROR: Unsupported argument
  endpoint {
    url = "http://127.0.0.1:8000"
  }
}

server { # ERROR: Missing name for server
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurency  = [1] # ERROR: Unsupported argument
    concurrency = [1]
  }
  sla {
    tfft    = "p95 < 2s" # ERROR: Unsupported argument
    success = "every"
  }
  good {
    throughput = "> 5 tok/s" # ERROR: Unsupported argument
    ttft       = "< 2s"
  }
}
