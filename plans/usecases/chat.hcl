# Five use cases as published capacity reports define them: contexts from 1K to
# 96K, answers of 1K (128 for code completion), nothing cached, and the thresholds
# at which these reports call a use case usable. How many users does your server
# carry in each? Name your server and run the plan:
#
#   tokgate run plans/usecases/chat.hcl --var url=http://127.0.0.1:8000
#   tokgate run --simulate plans/usecases/chat.hcl    # in seconds, without a server
#
# A request of the longest ones takes minutes; --only selects a use case.
#
# The thresholds are the published ones, for any server. So a fast server may become
# slower by a quarter unnoticed. `tokgate init --measure` writes a gate that notices.

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "The server under test."
}

variable "engine" {
  type        = string
  default     = "openai"
  description = "vllm, sglang, llama.cpp, or openai for anything compatible."
}

gate {
  budget = "6h" # limits the wait for a server that hangs
}

variable "concurrency" {
  type        = list(number)
  default     = [1, 2, 5, 10]
  description = "Requests in flight."
}

server "under_test" {
  engine = var.engine
  endpoint { url = var.url }
  simulator { profile = "qwen3.5-35b-a3b-fp8.1x-h100" } # --simulate uses this profile instead
}

workload "use_case" {
  for_each = toset([
    "code_completion",
    "short_form_chatbot",
    "general_chatbot",
    "long_document",
    "coding_assistant",
  ])
  preset        = each.value
  output_tokens = { mean = each.value == "code_completion" ? 128 : 1024, jitter = "25%" }

  load {
    concurrency = var.concurrency
    requests    = 100
  }
}
