# A chat product with history: four conversations begin each second, their users think, and every
# prompt holds what was said before. On the built-in server with a prefix cache; a cache that is off
# is red. For a server of yours, replace the simulator:
#
#   endpoint { url = "http://127.0.0.1:8000" }
#
# Its limits leave room for a busy machine, so it does not notice a server that is
# slower by a quarter: set limits near what yours needs.

server "demo" {
  simulator { profile = "prefix-cache" }
}

workload "chat" {
  input_tokens  = 100
  output_tokens = { mean = 24, jitter = "50%" }
  prompt {
    turns = { mean = 4, max = 10 }
  }
  load {
    rate       = "4 req/s" # conversations that begin
    think_time = { mean = "10s", cv = 1 }
    duration   = "3m"
  }
  sla {
    ttft_turn_1    = "p95 < 1s"
    ttft_later     = "p95 < 1s"
    e2e            = "p95 < 5s"
    cache_hit_rate = "> 50%"
  }
}
