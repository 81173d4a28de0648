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
