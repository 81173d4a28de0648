# Qwen3.6-35B-A3B-MTP FP8 on one RTX Pro 6000 Blackwell (96 GB), as MillstoneAI's
# capacity report measured it with vLLM and multi-token prediction: contexts from
# 1K to 256K, no prompt cache, full-precision KV cache, 7.5K requests without a
# failure.
# MillstoneAI.com/inference-benchmark/qwen3-6-35b-a3b-mtp-fp8-1x-rtx-pro-6000-blackwell
#
#   tokgate run --simulate plans/reference/qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000.hcl   # exit 1: not every load holds the SLA
#   tokgate run plans/reference/qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000.hcl --var url=http://127.0.0.1:8000

include = ["lib/conditions.hcl", "lib/capacity-report.hcl"]

report {
  title    = "Qwen3.6 35B A3B with MTP, FP8, on one RTX PRO 6000"
  subtitle = "vLLM, contexts from 1K to 256K"
  notes    = ["The loads and use cases are those of a published capacity report."]
}

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "The server under test."
}

server "vllm" {
  description = "One RTX Pro 6000 Blackwell with 96 GB; FP8; vLLM with multi-token prediction"
  engine      = "vllm" # the report names no version and, apart from MTP, no flags
  model       = "Qwen/Qwen3.6-35B-A3B-FP8"
  endpoint { url = var.url }
  simulator {
    profile = "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000"
    seed    = var.simulator_seed
  }
  telemetry { interval = "5s" }
}

variable "simulator_seed" {
  type        = number
  default     = 1
  description = "With --simulate: what a server draws that decodes speculatively."
}

locals {
  contexts = { "1K" = 1024, "8K" = 8192, "32K" = 32768, "64K" = 65536, "96K" = 98304, "256K" = 262144 }
  grid     = [1, 2, 3, 5]

  # levels are those that the report prints. past are the levels that miss a threshold.
  use_cases = {
    code_completion    = { levels = [1, 35, 100], past = [35, 100] } # limit ~35
    short_form_chatbot = { levels = [1, 75, 125], past = null }      # 125+
    general_chatbot    = { levels = [1, 39, 52], past = [39, 52] }   # 39
    long_document      = { levels = [1, 15, 20], past = [20] }       # ~15
    coding_assistant   = { levels = [1, 4, 5], past = [5] }          # 4
  }

  # The report does not say. These values are assumed, from the fit of the profile.
  assumed = { requests_per_slot = 5, stagger = "4ms", pause = "2.165s" }
}
