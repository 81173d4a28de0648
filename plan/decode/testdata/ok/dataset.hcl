server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" {
  output_tokens = 64
  prompt {
    dataset = "lib/prompts.jsonl"
  }
  load { concurrency = [4] }
  sla { ttft = "p95 < 2s" }
}

workload "as_long" {
  input_tokens  = 512 # rows are cut to it, or go on with those behind them
  output_tokens = 64
  prompt {
    dataset = "lib/prompts.jsonl"
  }
  load { concurrency = [4] }
  sla { ttft = "p95 < 2s" }
}

workload "rag" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    hit_rate = "80%"
  }
  load { concurrency = [4] }
  sla { ttft = "p95 < 2s" }
}

workload "system_prompt" {
  input_tokens  = 4096
  output_tokens = 64
  prompt {
    shared_prefix = { tokens = 2048, groups = 20 }
    warm          = false
  }
  load { concurrency = [4] }
  sla { ttft = "p95 < 2s" }
}
