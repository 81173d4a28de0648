# Qwen3-Coder-30B-A3B-Instruct FP8 on one H200 SXM, as MillstoneAI's capacity
# report measured it with vLLM: contexts from 1K to 256K, no prompt cache, no
# speculation, full-precision KV cache, 5.4K requests without a failure.
# MillstoneAI.com/inference-benchmark/qwen3-coder-30b-a3b-instruct-fp8-1x-h200-sxm
#
#   tokgate run --simulate plans/reference/qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm.hcl
#   tokgate run plans/reference/qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm.hcl --var url=http://127.0.0.1:8000

include = ["lib/conditions.hcl", "lib/capacity-report.hcl"]

report {
  title    = "Qwen3 Coder 30B A3B Instruct, FP8, on one H200"
  subtitle = "vLLM, contexts from 1K to 256K"
  notes    = ["The loads and use cases are those of a published capacity report."]
}

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "The server under test."
}

server "vllm" {
  description = "One H200 SXM; FP8; vLLM"
  engine      = "vllm" # the report names no version and no flags
  model       = "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8"
  endpoint { url = var.url }
  simulator { profile = "qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm" }
  telemetry { interval = "5s" }
}

locals {
  contexts = { "1K" = 1024, "8K" = 8192, "32K" = 32768, "64K" = 65536, "96K" = 98304, "256K" = 262144 }
  grid     = [1, 2, 4, 6]

  # levels are those that the report prints. past are the levels that miss a threshold.
  use_cases = {
    code_completion    = { levels = [1, 42, 100], past = [42, 100] } # limit ~42
    short_form_chatbot = { levels = [1, 75, 125], past = null }      # 125+
    general_chatbot    = { levels = [1, 15, 21], past = [15, 21] }   # ~15
    long_document      = { levels = [1, 5, 7], past = [7] }          # 5
    coding_assistant   = { levels = [1, 2, 6], past = [6] }          # 2
  }

  # The report does not say. These values are assumed, from the fit of the profile.
  assumed = { requests_per_slot = 5, stagger = "4ms", pause = "1.698s" }
}
