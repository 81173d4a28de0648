server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "small" {
  engine = "vllm"
  model  = "m"
  flags  = { max-model-len = 4096 }
  process {}
}

workload "context" { # ERROR: Context longer than the server allows
  server = server.small
  load { trace = "lib/trace.jsonl" }
  sla { success = "every" }
}

workload "cut" {
  server = server.small
  load {
    trace    = "lib/trace.jsonl"
    truncate = true
  }
  sla { success = "every" }
}

workload "missing" {
  server = server.s
  load { trace = "lib/nowhere.jsonl" } # ERROR: Unusable trace
  sla { success = "every" }
}

workload "broken" {
  server = server.s
  load { trace = "lib/trace-broken.jsonl" } # ERROR: Unusable trace
  sla { success = "every" }
}

workload "format" {
  server = server.s
  load {
    trace  = "lib/trace.jsonl"
    format = "moncake" # ERROR: Unknown choice
  }
  sla { success = "every" }
}

workload "stretch" {
  server = server.s
  load {
    trace = "lib/trace.jsonl"
    from  = "10m"
    to    = "5m" # ERROR: Value out of range
  }
  load {
    trace = "lib/trace.jsonl" # ERROR: Unusable trace
    from  = "10m"
  }
  sla { success = "every" }
}

workload "speed" {
  server = server.s
  load {
    trace   = "lib/trace.jsonl"
    speedup = [0, 2, "3"] # ERROR: Value out of range # ERROR: Wrong type
  }
  sla { success = "every" }
}

workload "columns" {
  server = server.s
  load {
    trace   = "lib/trace.jsonl"
    columns = { time = "timestamp", input = "input_length" } # ERROR: Missing setting
  }
  load {
    trace   = "lib/trace.jsonl"
    columns = { time = "timestamp", input = "input_length", output = "output_length", hash_ids = "hash_ids" } # ERROR: Missing setting
  }
  load {
    trace   = "lib/trace.jsonl"
    format  = "azure" # ERROR: Conflicting settings
    columns = { time = "timestamp", input = "input_length", output = "output_length" }
  }
  sla { success = "every" }
}

workload "others" {
  server        = server.s
  input_tokens  = 64 # ERROR: Conflicting settings
  output_tokens = 64 # ERROR: Conflicting settings
  load {
    trace    = "lib/trace.jsonl"
    duration = "5m"       # ERROR: Conflicting settings
    arrivals = "poisson"  # ERROR: Conflicting settings
    stagger  = "1s"       # ERROR: Conflicting settings
  }
  prompt { turns = 3 } # ERROR: Conflicting settings
  sla { success = "every" }
}

workload "rate" {
  server        = server.s
  input_tokens  = 64
  output_tokens = 64
  load {
    rate    = "4 req/s"
    speedup = 2 # ERROR: Conflicting settings
  }
  sla { success = "every" }
}
