server "s" {
  simulator {}
}

server "t" {
  simulator {}
}

workload "w" {
  input_tokens  = 64
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }

  good {
    repetition = "yes" # ERROR: Invalid threshold
  }
  sla {
    empty = "<= 1%" # ERROR: Missing statistic
  }
  sla {
    empty = "rate >= 1%" # ERROR: Threshold points the wrong way
  }
  sla {
    empty = "p95 <= 1%" # ERROR: Statistic not allowed
  }
  sla {
    valid_json = "share >= 95%" # ERROR: Statistic not allowed
  }
  sla {
    valid_json = "rate >= 0%" # ERROR: Value out of range
  }
}

compare "c" {
  control   = server.s
  candidate = server.t
  tolerate {
    answer_tokens = "mean +10%" # ERROR: Invalid change
  }
  tolerate {
    empty = "+1pp" # ERROR: Missing statistic
  }
  tolerate {
    empty = "rate +1%" # ERROR: Wrong unit
  }
  improve {
    answer_tokens = "mean +-10%" # ERROR: Invalid change
  }
}

workload "forced" {
  prompt { dataset = "builtin:recall" }
  output_tokens = 64
  load { concurrency = 2 }
  score { # ERROR: Unusable score
    match = "contains"
  }
  answers { # ERROR: Conflicting settings
    store = "hash"
  }
}

workload "kept" {
  input_tokens  = 64
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }
  answers {
    store = "gzip" # ERROR: Unknown choice
  }
}

workload "unknown" {
  prompt {
    dataset = "builtin:recal" # ERROR: Unusable data set
  }
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }
}

workload "unscored" {
  input_tokens  = 64
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }
  sla {
    accuracy = "rate >= 80%" # ERROR: No score block
  }
}

workload "synthetic" {
  input_tokens  = 64
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }
  score { # ERROR: Unusable score
    match = "number"
  }
}

workload "patterns" {
  for_each = toset(["a"])
  prompt { dataset = "builtin:recall" }
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }
  score {
    match = { regex = "(", group = 1 } # ERROR: Unusable score
  }
}

workload "groups" {
  prompt { dataset = "builtin:recall" }
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }
  score {
    match = { regex = "a", group = 1 } # ERROR: Unusable score
  }
}

workload "matches" {
  prompt { dataset = "builtin:recall" }
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }
  score {
    match = "fuzzy" # ERROR: Unknown choice
  }
}
