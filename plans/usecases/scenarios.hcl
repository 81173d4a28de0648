# Four scenarios as a published scenario report defines them, 256 tokens of
# answer each: together ("peak", a closed loop) and all at once ("burst"). The
# burst levels show how deep a queue may get until the mean TTFT exceeds 3 s.
#
#   tokgate run plans/usecases/scenarios.hcl --var url=http://127.0.0.1:8000
#   tokgate run --simulate plans/usecases/scenarios.hcl    # in seconds, without a server

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "The server under test."
}

gate {
  budget = "12h" # a server that hangs is not waited for longer
}

variable "engine" {
  type        = string
  default     = "openai"
  description = "vllm, sglang, llama.cpp, or openai for anything compatible."
}

server "under_test" {
  engine = var.engine
  endpoint { url = var.url }
  simulator { profile = "qwen3.5-35b-a3b-fp8.1x-h100" } # what --simulate uses instead
}

workload "scenario" {
  for_each      = toset(["chatbot", "rag", "agentic", "tool_calling"])
  preset        = each.value
  output_tokens = { mean = 256, jitter = "5%" }

  load {
    concurrency = [1, 2, 4, 8, 16, 32]
  }
  load {
    burst  = [8, 32, 128]
    bursts = 5
  }
}
