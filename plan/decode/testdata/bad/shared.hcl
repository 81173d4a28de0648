server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "two" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    shared_prefix = { tokens = 512 }
    hit_rate      = "80%" # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "much" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    shared_prefix = { tokens = 1000, groups = 20 } # ERROR: Value out of range
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "all" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    hit_rate = "99%" # ERROR: Value out of range
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "zero" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    hit_rate = 0 # ERROR: Value out of range
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "keys" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    shared_prefix = { tokens = 9, size = 5 } # ERROR: Unknown choice
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "number" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    shared_prefix = 512 # ERROR: Wrong type
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "warm" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    warm = false # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "real" {
  output_tokens = 64
  prompt {
    dataset  = "lib/prompts.jsonl"
    hit_rate = "80%" # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "tokens" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    shared_prefix = { groups = 20 } # ERROR: Missing setting
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "both" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    system   = { tokens = 512 } # ERROR: Conflicting settings
    hit_rate = "80%"
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "of-nothing" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    system = { } # ERROR: Missing setting
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "text-and-tokens" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    system = { text = "Be brief.", tokens = 9 } # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "bare-prompt" {
  api           = "completions"
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    system = { tokens = 9 } # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "before-rows" {
  output_tokens = 64
  prompt {
    dataset = "lib/prompts.jsonl"
    system  = { tokens = 9 } # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "before-cut-rows" {
  input_tokens  = 1024
  output_tokens = 64
  prompt {
    dataset = "lib/prompts.jsonl"
    system  = { text = "Be brief." } # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "before-a-task" {
  output_tokens = { natural = true, max = 64 }
  prompt {
    dataset = "builtin:recall"
    system  = { text = "Be brief." } # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}
