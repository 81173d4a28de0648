# What drafts bring is known of real text alone.
gate { budget = "1h" }

server "vllm" {
  engine = "vllm"
  process { command = ["vllm", "serve", "m", "--port", "{port}"] }
  flags = { speculative-config = { method = "ngram", num_speculative_tokens = 4 } }
}

server "sglang" {
  engine = "sglang"
  process { command = ["sglang", "--port", "{port}", "--speculative-algorithm=EAGLE"] }
}

server "llama" {
  engine = "llama.cpp"
  endpoint { url = "http://127.0.0.1:8080" }
  args = ["-md", "draft.gguf"]
}

server "simulator" {
  simulator { profile = "drafting" }
}

server "none" {
  engine = "llama.cpp"
  process { command = ["llama-server", "--port", "{port}"] }
  flags = { spec-type = "none", hfd = null }
}

workload "vllm" {
  server        = server.vllm
  input_tokens  = 100
  output_tokens = 100
  load { concurrency = 1 }
  sla {
    ttft  = "p95 < 1s"
    speed = "mean > 10 tok/s" # WARNING: Drafts of synthetic prompts
    tpot  = "p95 < 100ms"     # WARNING: Drafts of synthetic prompts
  }
}

workload "others" {
  server        = [server.sglang, server.llama]
  input_tokens  = 100
  output_tokens = 100
  load { concurrency = 1 }
  sla { accept_rate = "> 50%" } # WARNING: Drafts of synthetic prompts # WARNING: Drafts of synthetic prompts
}

workload "preset" {
  server = server.simulator
  preset = "short_form_chatbot" # WARNING: Drafts of synthetic prompts
  load { concurrency = 1 }
}

workload "without" {
  server        = server.none
  input_tokens  = 100
  output_tokens = 100
  load { concurrency = 1 }
  sla { speed = "mean > 10 tok/s" }
}

workload "real" {
  server        = [server.vllm, server.simulator]
  output_tokens = { natural = true, max = 100 }
  prompt { dataset = "lib/real.jsonl" }
  load { concurrency = 1 }
  sla { speed = "mean > 10 tok/s" }
}
