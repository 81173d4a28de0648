# Rows of a trace of which nobody knows the part.

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" {
  sla { success = "every" }
}

workload "small" {
  sla { success = "every" }
}

workload "other" {
  mix = { chat = "/v1/chat", small = "/v1/other" }
  load { # ERROR: Unusable trace
    trace   = "lib/trace-types.jsonl"
    columns = { time = "ts", input = "in", output = "out", type = "route" }
  }
}

workload "untyped" {
  mix = { chat = "chat", small = "small" }
  load { # ERROR: Unusable trace
    trace = "lib/trace.jsonl"
  }
}

workload "typed" {
  mix = { chat = "70%", small = "30%" } # ERROR: Conflicting settings
  load {
    trace = "lib/trace-sessions.csv"
  }
}

workload "sessions" {
  mix = { chat = "70%", long = "30%" }
  load { # ERROR: Unusable trace
    trace = "lib/trace-sessions.csv"
  }
}

workload "long" {
  api = "completions"
  sla { success = "every" }
}

workload "both" {
  mix = { chat = "70%", small = "small" } # ERROR: Conflicting settings
  load {
    trace = "lib/trace.jsonl"
  }
}

workload "twice" {
  mix = { chat = "small", small = "small" } # ERROR: Conflicting settings
  load { # ERROR: Unusable trace
    trace = "lib/trace-sessions.csv"
  }
}

workload "rates" {
  mix = { chat = "chat", small = "small" } # ERROR: Conflicting settings
  load {
    rate = "4 req/s"
  }
}

workload "beside" {
  mix = { lengths = "70%", long_lengths = "30%" }
  load { # ERROR: Conflicting settings
    trace = "lib/trace.jsonl"
  }
  load {
    concurrency = 4
  }
}

workload "lengths" {
  input_tokens  = 64
  output_tokens = 64
}

workload "long_lengths" {
  input_tokens  = 64
  output_tokens = 64
}

workload "unread" {
  mix = { chat = "chat", small = "small" }
  load {
    trace = "lib/nowhere.jsonl" # ERROR: Unusable trace
  }
}
