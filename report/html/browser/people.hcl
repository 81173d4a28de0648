# Users who read and think between their questions. `make browser` runs this plan.

server "vllm" {
  simulator { profile = "prefix-cache" }
}

workload "chat" {
  title         = "Support chat"
  description   = "Conversations of about six turns, half a minute apart."
  input_tokens  = 256
  output_tokens = 64
  prompt {
    turns = { mean = 6, max = 20 }
  }
  load {
    users      = [25, 50, 100]
    ramp_up    = "1m"
    think_time = { mean = "20s", cv = 1 }
    duration   = "10m"
  }
  sla {
    at         = ["25 users", "50 users"]
    ttft_later = "p95 < 2s"
    ttft       = "p95 < 2s"
  }
}
