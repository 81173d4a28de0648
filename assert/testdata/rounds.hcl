# Shares that the planned rounds can never certify, and some that they can. "tokgate
# validate" reports them where they are marked.

gate { clusters = "round" }

server "sim" {
  simulator {}
}

workload "five_rounds" {
  input_tokens  = 1000
  output_tokens = 100
  good { ttft = "< 2s" }
  load {
    stage "calm" {
      rate     = "1 req/s"
      duration = "10s"
    }
  }
  sla {
    at      = "calm"
    success = "rate >= 98%"    # ERROR: needs 149 rounds at 95% confidence, because requests of one round may fail together; the plan has only 5. Either use seeds = range(1, 150), or write "observed >= 98%" or "every" to judge only the requests of this run. You may also lower
    goodput = "share >= 95.5%" # ERROR: needs 66 rounds at 95% confidence, because requests of one round may fail together; the plan has only 5. Either use seeds = range(1, 67), or write "observed >= 95.5%" to judge only the requests of this run. You may also lower
  }
  sla {
    at       = "calm"
    severity = "warn"
    success  = "rate > 99%" # WARNING: needs 299 rounds
  }
}

workload "never" {
  input_tokens  = 1000
  output_tokens = 100
  load {
    burst  = 8
    bursts = 149
  }
  sla { success = "rate >= 100%" } # ERROR: a sample cannot prove that every request succeeds. Write "observed >= 100%" or "every" to judge only the requests of the run, or allow a share of the requests to fail.
}

workload "many" {
  input_tokens  = 1000
  output_tokens = 100
  load {
    stage "calm" {
      rate     = "1 req/s"
      duration = "10s"
    }
  }
  sla {
    at      = "calm"
    success = "rate >= 99.9%" # ERROR: needs 2995 rounds at 95% confidence, because requests of one round may fail together; the plan has only 5. Either use seeds = concat(range(1, 1025), range(1025, 2049), range(2049, 2996)), or
  }
  sla {
    at      = "calm"
    goodput = "share >= 99.99%" # ERROR: needs 29956 rounds at 95% confidence, because requests of one round may fail together; the plan has only 5. Either use 29956 seeds, or
  }
  good { ttft = "< 2s" }
}

# The last of three looks has 0.0258 of the error: ln 0.0258 / ln 0.98 = 181.0 and more.
workload "extended" {
  input_tokens  = 1000
  output_tokens = 100
  gate { on_inconclusive = "extend" }
  load {
    burst  = 8
    bursts = 45
  }
  sla { success = "rate >= 98%" } # ERROR: needs 182 bursts at 97.4% confidence, because requests of one round may fail together; the plan has only 180. Either use bursts = 182
}

workload "bursts" {
  input_tokens  = 1000
  output_tokens = 100
  load {
    burst  = 16
    bursts = 148
  }
  sla { success = "rate >= 98%" } # ERROR: needs 149 bursts at 95% confidence, because requests of one round may fail together; the plan has only 148. Either use bursts = 149, or write
}

# A closed loop is one window.
workload "window" {
  input_tokens  = 1000
  output_tokens = 100
  load { concurrency = 8 }
  sla { success = "rate >= 98%" } # ERROR: a closed loop is one window and has no rounds whose requests could fail together. Set clusters = "wave".
}

workload "capacity" {
  input_tokens  = 1000
  output_tokens = 100
  capacity {
    up_to   = 64
    require = 20
  }
  sla { success = "rate >= 98%" } # ERROR: at capacity can never pass: a closed loop is one window and has no rounds whose requests could fail together. Set clusters = "wave".
}

workload "enough" {
  input_tokens  = 1000
  output_tokens = 100
  good { ttft = "< 2s" }
  load {
    burst  = 8
    bursts = 149
  }
  sla {
    success = ["rate >= 98%", "observed >= 99.9%", "every"]
    goodput = ["share >= 98%", "observed >= 99.9%"]
  }
}

workload "extended_enough" {
  input_tokens  = 1000
  output_tokens = 100
  gate { on_inconclusive = "extend" }
  load {
    burst  = 8
    bursts = 51 # 4 times 51 are 204
  }
  sla { success = "rate >= 98%" }
}

workload "capacity_of_this_run" {
  input_tokens  = 1000
  output_tokens = 100
  capacity { up_to = 64 }
  sla { success = "observed >= 98%" }
}

workload "estimate" {
  input_tokens  = 1000
  output_tokens = 100
  gate { decide = "estimate" }
  load { concurrency = 8 }
  sla { success = "rate >= 98%" }
}
