# ENV: HF_TOKEN=hf-0123456789
gate {
  budget          = "100m" # wall clock of the whole run, starts and teardown included
  on_inconclusive = "extend"
}

variable "model" {
  type        = string
  default     = "Qwen/Qwen3.6-35B-A3B-FP8"
  description = "The model under test."
}

server "vllm" {
  engine = "vllm"
  model  = var.model

  process {
    command = ["vllm", "serve", var.model, "--port", "{port}"]
    env     = { HF_TOKEN = env.HF_TOKEN, VLLM_USE_V1 = 1 }
  }
  simulator { profile = "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000" }

  flags = {
    max-model-len          = 131072
    gpu-memory-utilization = 0.45
    enable-chunked-prefill = true
    enable-prefix-caching  = false
    kv-cache-dtype         = null
    lora-modules           = ["a=/loras/a", "b=/loras/b"]
    speculative-config     = { method = "qwen3_next_mtp", num_speculative_tokens = 2 }
  }
  args = ["--no-async-scheduling"]
  ready { timeout = "20m" }
  expect {
    gpu     = "1 x RTX PRO 6000"
    version = "0.19.1"
  }
}

workload "general_chatbot" {
  description   = "ChatGPT-style chat, 32K context, nothing cached"
  server        = server.vllm
  input_tokens  = 32 * 1024
  output_tokens = { mean = 1024, jitter = "5%" }

  load {
    concurrency = [1, 2, 5, 30]
    requests    = { 1 = 60, default = 300 }
    seeds       = [42, 123, 7, 8, 9]
    warmup      = "auto"
    stagger     = "auto"
    pause       = "0s"
  }

  sla {
    at    = [30]
    ttft  = "p95 < 8s"
    speed = ["mean > 15 tok/s", "p5 > 10 tok/s"]
  }
  sla {
    severity = "warn"
    success  = "rate >= 98%"
  }
}

assert "nothing failed" {
  condition     = result.vllm.general_chatbot.level[30].failed == 0
  error_message = "Requests failed."
}

assert "the tail is bounded" {
  condition     = result.vllm.general_chatbot.level[30].ttft["p99.9"] < seconds("20s")
  error_message = "p99.9 is ${result.vllm.general_chatbot.level[30].ttft["p99.9"]}s."
}
