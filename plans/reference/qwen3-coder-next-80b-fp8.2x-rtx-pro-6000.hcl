# Qwen3-Coder-Next 80B FP8 on two RTX Pro 6000 Blackwell (192 GB), as MillstoneAI's
# capacity report measured it with SGLang: contexts from 1K to 256K, no prompt
# cache, no speculation, full-precision KV cache, 4.3K requests without a failure.
# MillstoneAI.com/inference-benchmark/qwen3-coder-next-fp8-2x-rtx-pro-6000-blackwell
#
#   tokgate run --simulate plans/reference/qwen3-coder-next-80b-fp8.2x-rtx-pro-6000.hcl
#   tokgate run plans/reference/qwen3-coder-next-80b-fp8.2x-rtx-pro-6000.hcl --var url=http://127.0.0.1:30000

include = ["lib/conditions.hcl", "lib/capacity-report.hcl"]

report {
  title    = "Qwen3 Coder Next 80B, FP8, on two RTX PRO 6000"
  subtitle = "SGLang, contexts from 1K to 256K"
  notes    = ["The loads and use cases are those of a published capacity report."]
}

variable "url" {
  type        = string
  default     = "http://127.0.0.1:30000"
  description = "The server under test."
}

server "sglang" {
  description = "Two RTX Pro 6000 Blackwell with 192 GB together; FP8; SGLang"
  engine      = "sglang" # the report names no version and no flags
  model       = "Qwen/Qwen3-Coder-Next-FP8"
  endpoint { url = var.url }
  simulator { profile = "qwen3-coder-next-80b-fp8.2x-rtx-pro-6000" }
  telemetry { interval = "5s" }
}

locals {
  contexts = { "1K" = 1024, "8K" = 8192, "32K" = 32768, "64K" = 65536, "96K" = 98304, "128K" = 131072, "256K" = 262144 }
  grid     = [1, 2, 5, 10]

  # levels are those that the report prints. past are the levels that miss a threshold.
  use_cases = {
    code_completion    = { levels = [1, 18, 26], past = [18, 26] } # limit 18
    short_form_chatbot = { levels = [1, 39, 67], past = [39, 67] } # ~39
    general_chatbot    = { levels = [1, 6, 10], past = [10] }      # 6
    long_document      = { levels = [1, 4, 10], past = [10] }      # 4
    coding_assistant   = { levels = [1, 2, 10], past = [10] }      # 2
  }

  # The report does not say. These values are assumed, from the fit of the profile.
  assumed = { requests_per_slot = 5, stagger = "4ms", pause = "3.45s" }
}
