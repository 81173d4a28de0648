# Four scenarios as a published scenario report defines them, with answers of 256
# tokens: in a closed loop ("peak"), and all at once ("burst", up to the largest burst
# of these whose mean TTFT stays below 3 s on one H100).
#
#   tokgate run plans/usecases/scenarios.hcl --var url=http://127.0.0.1:8000
#   tokgate run --simulate plans/usecases/scenarios.hcl    # in seconds, without a server

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "The server under test."
}

gate {
  budget = "12h" # limits the wait for a server that hangs
}

variable "engine" {
  type        = string
  default     = "openai"
  description = "vllm, sglang, llama.cpp, or openai for anything compatible."
}

server "under_test" {
  engine = var.engine
  endpoint { url = var.url }
  simulator { profile = "qwen3.5-35b-a3b-fp8.1x-h100" } # --simulate uses this profile instead
}

# A tenth above what one request takes today on the simulated H100, so that a server
# slower by a quarter fails. Enter what your server does; null leaves a bound out.
variable "today" {
  type = map(object({ ttft = string, speed = string }))
  default = {
    chatbot      = { ttft = "mean < 225ms", speed = "mean > 150 tok/s" } # 206 ms, 170 tok/s
    rag          = { ttft = "mean < 270ms", speed = "mean > 150 tok/s" } # 248 ms, 170 tok/s
    agentic      = { ttft = "mean < 490ms", speed = "mean > 150 tok/s" } # 453 ms, 170 tok/s
    tool_calling = { ttft = "mean < 900ms", speed = "mean > 150 tok/s" } # 824 ms, 169 tok/s
  }
}

workload "scenario" {
  for_each      = { chatbot = [8, 32, 96], rag = [8, 32], agentic = [8], tool_calling = [4] }
  preset        = each.key
  output_tokens = { mean = 256, jitter = "25%" }

  load {
    concurrency = [1, 2, 4, 8, 16, 32]
  }
  load {
    burst  = each.value
    bursts = 5
  }

  sla {
    at    = 1
    ttft  = var.today == null ? null : var.today[each.key].ttft
    speed = var.today == null ? null : var.today[each.key].speed
  }
}
