# A chat product with history: four conversations begin each second, users think between their
# turns, and every prompt holds the conversation so far. The built-in server has a prefix cache, and
# the gate fails if the cache is off. For your own server, replace the simulator:
#
#   endpoint { url = "http://127.0.0.1:8000" }
#
# The limits leave room for a busy machine, so the gate does not notice a server that is
# slower by a quarter. Set limits near what your server does.

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
    rate       = "4 req/s" # conversations that begin each second
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
