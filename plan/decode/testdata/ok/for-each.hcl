locals {
  mtp        = { method = "qwen3_next_mtp", num_speculative_tokens = 2 }
  production = { max-model-len = "64k", enable-prefix-caching = true }
  contexts   = { for k in [8, 32] : "${k}K" => k * 1024 }
}

server "vllm" {
  for_each = { off = null, on = local.mtp }
  engine   = "vllm"
  flags    = merge(local.production, { speculative-config = each.value })
  endpoint { url = "http://vllm-${each.key}.example:8000" }
}

workload "context" {
  for_each      = local.contexts
  description   = "context ${each.key}"
  input_tokens  = each.value
  output_tokens = 256
  load { concurrency = [1, 4] }
  sla {
    ttft = "p95 < ${each.value / 1024}s"
  }
}

workload "one" {
  for_each      = toset(["on"])
  server        = server.vllm[each.key]
  input_tokens  = 128
  output_tokens = 256
  load { concurrency = 1 }
  sla { tpot = "every < 100ms/token" }
}

workload "family" {
  server        = [server.vllm["off"], server.vllm["on"]]
  input_tokens  = 128
  output_tokens = 256
  load { concurrency = 1 }
}

assert "speculation helps" {
  condition     = result.vllm["on"].context["8K"].level[4].speed.mean > result.vllm["off"].context["8K"].level[4].speed.mean
  error_message = "It does not."
}

assert "everything completes" {
  condition = alltrue([
    for s in ["on", "off"] : result.vllm[s].family.level["1"].failed == 0
  ])
  error_message = "A request failed."
}
