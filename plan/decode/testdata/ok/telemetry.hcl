# What a server tells of itself, and what it costs.
gate {
  confidence = 0.95
}

prices {
  currency    = "EUR"
  per_hour    = { own = 2.5, default = 4 }
  electricity = 0.30
}

server "own" {
  engine = "llama.cpp"
  process {
    command = ["llama-server", "--metrics", "--port", "{port}"]
  }
}

server "far" {
  engine = "vllm"
  endpoint {
    url = "https://llm.example.com/v1"
  }
  telemetry {
    interval    = "500ms"
    metrics_url = "https://llm.example.com:9000/metrics"
    dcgm_url    = "http://gpu7.example.com:9400/metrics"
    gpus        = [0, "GPU-6c4d1f2e"]
    require     = { throttled = "< 5%", clock_spread = "< 3%", foreign_processes = 0 }
  }
}

server "quiet" {
  endpoint {
    url = "http://127.0.0.1:8000"
  }
  telemetry {
    enabled = false
  }
}

workload "chat" {
  input_tokens  = 1024
  output_tokens = 128
  load {
    concurrency = 8
    requests    = 200
  }
  sla {
    queue_wait              = ["p95 < 1s", "mean < 300ms"]
    prefill                 = "p50 < 2s"
    kv_usage                = "max < 95%"
    waiting                 = ["max < 20 requests", "mean < 4 requests"]
    preemptions             = "< 1"
    accept_rate             = "> 60%"
    accept_length           = "> 1.5 tokens"
    power                   = "mean < 1.2 kW"
    gpu_memory              = "max < 75 GiB"
    gpu_temperature         = "max < 85 °C"
    gpu_clock               = "min > 1400 MHz"
    energy_per_token        = "< 800 mJ/token"
    cost_per_hour           = "< 5 EUR/h"
    cost_per_million_tokens = "< 1.5 EUR"
  }
}

assert "drafts help at every position" {
  condition     = result.far.chat.level[8].accept_rate_at[1] > 0.3 && result.far.chat.level[8].queue_wait.p90 < seconds("2s")
  error_message = "They do not."
}
