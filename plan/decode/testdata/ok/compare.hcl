gate {
  on_inconclusive = "extend"
}

locals {
  production = { max-model-len = 32768 }
  mtp        = { method = "qwen3_next_mtp", num_speculative_tokens = 2 }
}

server "vllm" {
  for_each = { off = null, on = local.mtp }
  engine   = "vllm"
  process { command = ["vllm", "serve", "Qwen/Qwen3-8B", "--port", "{port}"] }
  flags = merge(local.production, { speculative-config = each.value })
}

server "next" {
  engine = "vllm"
  process { command = ["vllm-next", "serve", "Qwen/Qwen3-8B", "--port", "{port}"] }
  flags = local.production
}

server "elsewhere" {
  engine = "vllm"
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "test" {
  for_each      = { stress = 128, prefill_bound = 8192 }
  server        = [server.vllm, server.next]
  input_tokens  = each.value
  output_tokens = 64
  load {
    concurrency = [1, 4]
    requests    = { 4 = 800 }
  }
  load { burst = 8 }
  sla { ttft = "p95 < 8s" }
  capacity { up_to = 64 }
}

workload "pinned" {
  server        = server.elsewhere
  input_tokens  = 128
  output_tokens = 16
  load { concurrency = 16 }
  good { ttft = "< 1s" }
}

compare "mtp" {
  control   = server.vllm["off"]
  candidate = server.vllm["on"]
  changed   = ["flags"]
  improve {
    workloads  = [workload.test["stress"]]
    throughput = "+10%"
    e2e        = "mean -0%"
  }
  tolerate {
    workloads = workload.test["prefill_bound"]
    at        = [4, "burst 8"]
    severity  = "warn"
    ttft      = "p95 +10%"
    speed     = ["mean -5%", "p5 -7.5%"]
    success   = "rate -1pp"
    capacity  = "-15%"
  }
}

compare "upgrade" {
  control   = server.vllm["off"]
  candidate = server.next
  changed   = ["command", "version"]
  tolerate {
    throughput = "-5%"
  }
}

compare "night" {
  control   = baseline("perf/2026-11-19", "old")
  candidate = server.elsewhere
  rounds    = 12
  tolerate {
    goodput = ["share -2pp", "-5%"]
  }
}
