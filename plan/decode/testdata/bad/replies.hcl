server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "single" {
  output_tokens = 64
  prompt {
    dataset = "lib/prompts.jsonl"
    replies = "recorded" # ERROR: Unusable data set
  }
  load { users = [2] }
  sla { success = "every" }
}

workload "tools" {
  output_tokens = 64
  prompt {
    dataset = "lib/talk.jsonl"
    replies = "own" # ERROR: Unusable data set
  }
  load { users = [2] }
  sla { success = "every" }
}

workload "closed" {
  output_tokens = 64
  prompt {
    dataset = "lib/talk.jsonl"
    replies = "recorded"
  }
  load { concurrency = [2] } # ERROR: Conflicting settings
  sla { success = "every" }
}

workload "cut" {
  input_tokens  = 512
  output_tokens = 64
  prompt {
    dataset = "lib/talk.jsonl"
    replies = "recorded" # ERROR: Conflicting settings
  }
  load { users = [2] }
  sla { success = "every" }
}

workload "generated" {
  input_tokens  = 512
  output_tokens = 64
  prompt {
    replies = "recorded" # ERROR: Conflicting settings
  }
  load { users = [2] }
  sla { success = "every" }
}

workload "task" {
  output_tokens = { natural = true, max = 64 }
  prompt {
    dataset = "builtin:recall"
    replies = "recorded" # ERROR: Conflicting settings
  }
  load { users = [2] }
  sla { success = "every" }
}

workload "completions" {
  api           = "completions"
  output_tokens = 64
  prompt {
    dataset = "lib/talk.jsonl" # ERROR: Unusable data set
    replies = "recorded"       # ERROR: Conflicting settings
  }
  load { users = [2] }
  sla { success = "every" }
}
