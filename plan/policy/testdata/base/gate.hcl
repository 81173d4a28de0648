gate {
  budget = "1h"
}

server "v" {
  engine = "vllm"
  model  = "m"
  flags  = { max-model-len = 4096 }
  container {
    image   = "vllm/vllm-openai:v0.19.1"
    volumes = ["/data/hf/m:/root/.cache/huggingface:ro"]
    env     = { HF_TOKEN = env.HF_TOKEN, NCCL_DEBUG = "WARN" }
    options = ["--ipc", "host", "--init"]
  }
  telemetry {
    metrics_url = "http://127.0.0.1:9000/metrics"
  }
}

server "e" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" {
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = [1]
    requests    = 400
  }
  sla {
    ttft = "p95 < 2s"
    itl  = "p95 < 50ms"
  }
}
