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
