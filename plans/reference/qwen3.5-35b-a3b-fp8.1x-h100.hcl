# Qwen3.5-35B-A3B-FP8 on one H100, as a published scenario report measured it:
# four scenarios with answers of 256 tokens, in "peak" mode (N requests in flight)
# and "burst" mode (N requests at once), and the largest queue at which the mean
# TTFT stays within 3 s. The report does not name the engine. The copy that the
# figures come from does not name the publisher.
#
#   tokgate run --simulate plans/reference/qwen3.5-35b-a3b-fp8.1x-h100.hcl   # exit 1: not every load holds the SLA
#   tokgate run plans/reference/qwen3.5-35b-a3b-fp8.1x-h100.hcl --var url=http://127.0.0.1:8000

include = ["lib/conditions.hcl"]

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "The server under test."
}

server "h100" {
  model = "Qwen/Qwen3.5-35B-A3B-FP8"
  endpoint { url = var.url }
  simulator { profile = "qwen3.5-35b-a3b-fp8.1x-h100" }
  telemetry { interval = "5s" }
}

locals {
  powers = [1, 2, 4, 8, 16, 32]

  # Sizes of bursts, around the report's largest safe queues: 131, 84, 19 and 8. The
  # largest bursts of chatbot (256) and RAG (128) are published. Those of the others are
  # not, but the report says that chatbot's has the worst TTFT of all bursts.
  scenarios = {
    chatbot      = { safe = [1, 2, 4, 8, 16, 32, 64, 128], over = [256] }
    rag          = { safe = [1, 2, 4, 8, 16, 32, 64], over = [128] }
    agentic      = { safe = [1, 2, 4, 8, 16], over = [32] }
    tool_calling = { safe = [1, 2, 4, 8], over = [16] }
  }

  # The report does not say. These values are assumed, from the fit of the profile.
  assumed = { requests_per_slot = 5, stagger = "4ms", bursts = 3 }
}

workload "peak" {
  for_each      = toset(keys(local.scenarios))
  preset        = each.key
  output_tokens = { mean = 256, jitter = local.jitter }
  load {
    concurrency = local.powers
    requests    = local.published ? { for n in local.powers : n => max(20, n * local.assumed.requests_per_slot) } : null
    seeds       = local.published ? [42] : null
    warmup      = local.published ? 1 : null
    stagger     = local.published ? local.assumed.stagger : null
  }
  # Limits drawn as lines in the report's charts. They are only shown: the report exceeds both.
  sla {
    severity = "warn"
    ttft     = "mean <= 3s"
    itl      = "mean < 20ms"
  }
  sla { success = "every" }
}

workload "burst" {
  for_each      = local.scenarios
  preset        = each.key
  output_tokens = { mean = 256, jitter = local.jitter }
  load {
    burst  = concat(each.value.safe, each.value.over)
    bursts = local.published ? local.assumed.bursts : null
    seeds  = local.published ? [42] : null
    warmup = local.published ? 1 : null
  }
  sla {
    at       = [for n in each.value.over : "burst ${n}"]
    severity = "warn"
    ttft     = "mean <= 3s"
  }
  sla {
    at  = [for n in concat(each.value.safe, each.value.over) : "burst ${n}"]
    itl = "mean < 70ms"
  }
  capacity {
    over       = "burst"
    up_to      = 256
    resolution = local.published ? null : "5%"
    confirm    = !local.published
  }
}
