# Replays each format of recorded traffic once: two minutes of the synthetic examples next to
# this file, on the built-in server. It is not a gate; it shows how each format is declared.

gate {
  measure_only = true
}

server "demo" {
  simulator { profile = "prefix-cache" }
}

workload "replay" {
  for_each = toset(["mooncake-synthetic.jsonl", "bailian-synthetic.jsonl", "azure-synthetic.csv", "burstgpt-synthetic.csv", "tracelab-synthetic.jsonl", "aiperf-synthetic.jsonl", "samples-synthetic.jsonl"])
  load {
    trace    = each.value # tokgate detects its format
    from     = "4m"
    to       = "6m"
    truncate = true # prompts are cut to the server's context
  }
}

workload "gateway" {
  load {
    trace   = "gateway-synthetic.csv"
    columns = { time = "ts", input = "prompt_tokens", output = "completion_tokens", session = "user", type = "route" }
    to      = "2m"
  }
}
