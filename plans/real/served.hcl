# The same traffic over HTTP and in virtual time, for `make served`: does a simulation find as much
# in its cache as the built-in server does, and is its TTFT the same? The load is low and prompts
# are long, so that TTFT is mostly the server's.

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "Where the built-in server listens, with the profile prefix-cache."
}

variable "rows" {
  type        = string
  default     = "lib/rows.jsonl"
  description = "A data set. That of make served has long rows that begin alike."
}

gate {
  measure_only = true
}

server "sim" {
  engine = "vllm"
  endpoint { url = var.url }
  simulator { profile = "prefix-cache" }
}

workload "system" {
  title         = "system prompt"
  input_tokens  = 3000
  output_tokens = 16
  prompt {
    system = { tokens = 2048, groups = 4 }
  }
  load {
    concurrency = 2
    requests    = 150
  }
}

workload "conversations" {
  title         = "conversations"
  input_tokens  = 3000
  output_tokens = 16
  prompt { turns = 4 }
  load {
    users      = 2
    think_time = "500ms"
    duration   = "1m"
  }
}

workload "rows" {
  title         = "data set"
  output_tokens = 16
  prompt { dataset = var.rows }
  load {
    concurrency = 2
    requests    = 150
  }
}

workload "trace" {
  title = "trace"
  load {
    trace    = "../traces/mooncake-synthetic.jsonl"
    from     = "2m"
    to       = "4m"
    spread   = "3s"
    speedup  = 0.5
    truncate = true
  }
}
