# Each format of recorded traffic once: two minutes of the synthetic examples beside this
# file, on the built-in server. Not a gate: it shows how each is written down.

gate {
  measure_only = true
}

server "demo" {
  simulator { profile = "prefix-cache" }
}

workload "replay" {
  for_each = toset(["mooncake-synthetic.jsonl", "bailian-synthetic.jsonl", "azure-synthetic.csv", "burstgpt-synthetic.csv", "tracelab-synthetic.jsonl", "aiperf-synthetic.jsonl", "samples-synthetic.jsonl"])
  load {
    trace    = each.value # its format is found out
    from     = "4m"
    to       = "6m"
    truncate = true # to the context of the server
  }
}

workload "gateway" {
  load {
    trace   = "gateway-synthetic.csv"
    columns = { time = "ts", input = "prompt_tokens", output = "completion_tokens", session = "user", type = "route" }
    to      = "2m"
  }
}
