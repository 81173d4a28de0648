server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "missing" {
  output_tokens = 64
  prompt {
    dataset = "lib/nowhere.jsonl" # ERROR: Unusable data set
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "broken" {
  output_tokens = 64
  prompt {
    dataset = "lib/broken.jsonl" # ERROR: Unusable data set
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "column" {
  output_tokens = 64
  prompt {
    dataset = "lib/prompts.jsonl" # ERROR: Unusable data set
    column  = "question"
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "api" {
  api           = "completions"
  output_tokens = 64
  prompt {
    dataset = "lib/prompts.jsonl" # ERROR: Unusable data set
    order   = "random"            # ERROR: Unknown choice
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "none" {
  input_tokens  = 64
  output_tokens = 64
  prompt {
    order  = "file"     # ERROR: Conflicting settings
    column = "question" # ERROR: Conflicting settings
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "pictures" {
  input_tokens  = 512
  output_tokens = 64
  prompt {
    dataset = "lib/pictures.jsonl" # ERROR: Unusable data set
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "cut" {
  input_tokens  = 512
  output_tokens = { natural = true, max = 64 }
  prompt {
    dataset = "lib/real.jsonl"
  }
  score { # ERROR: Unusable score
    match = "exact"
  }
  load { concurrency = [1] }
  sla { success = "every" }
}
