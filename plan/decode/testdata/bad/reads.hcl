server "a" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "b" {
  endpoint { url = "http://127.0.0.1:8001" }
}

server "l" {
  engine = "llama.cpp"
  endpoint { url = "http://127.0.0.1:8002" }
}

server "s" {
  engine = "sglang"
  endpoint { url = "http://127.0.0.1:8003" }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = 16
  load { concurrency = 8 }
  sla { ttft = "p95 < 8s" }
}

compare "unread" {
  control   = server.a
  candidate = server.b
  tolerate {
    odd_answers = "count +2" # ERROR: Comparison without answers block
    answer_nll  = "mean +0.05" # ERROR: Comparison without answers block
  }
}

compare "recorded" {
  control   = baseline("results/last")
  candidate = server.b
  answers {} # ERROR: Comparison without answers block
  tolerate { throughput = "-5%" }
}

compare "few" {
  control   = server.a
  candidate = server.b
  answers {
    prompts    = 10 # ERROR: Value out of range
    max_tokens = 0 # ERROR: Value out of range
  }
  tolerate { throughput = "-5%" }
}

compare "bounds" {
  control   = server.a
  candidate = server.b
  answers {}
  tolerate {
    odd_answers = ["+2%", "count +2.5", "count -1", "mean +1"] # ERROR: Invalid change # ERROR: Invalid change # ERROR: Invalid change # ERROR: Invalid change
    answer_nll  = ["mean +5%", "count +1", "mean +0"] # ERROR: Invalid change # ERROR: Invalid change # ERROR: Value out of range
    agreement   = "mean -5pp" # ERROR: Unsupported argument
  }
  improve {
    throughput = "+5%"
    answer_nll = "mean -0.05" # ERROR: Unsupported argument
  }
}

compare "llama" {
  control   = server.l
  candidate = server.b
  changed   = ["engine"]
  answers {} # WARNING: Comparison without answers block
}

compare "sglang" {
  control   = server.s
  candidate = server.b
  changed   = ["engine"]
  answers {} # WARNING: Comparison without answers block
}
