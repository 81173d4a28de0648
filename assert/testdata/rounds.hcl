# Shares that the planned rounds can never certify, and some that they can. "tokgate
# validate" reports them where they are marked.

gate { clusters = "round" }

server "sim" {
  simulator {}
}

workload "ten_rounds" {
  input_tokens  = 1000
  output_tokens = 100
  good { ttft = "< 2s" }
  load { concurrency = [4, 8] }
  sla {
    success = "rate >= 98%"    # ERROR: needs 149 rounds at 95% confidence, because requests of one round may fail together; the plan has only 10. Either use seeds = range(1, 150) (if the plan sets requests, at least 149 for each request in flight), or write "observed >= 98%" or "every" to judge only the requests of this run. You may also lower
    goodput = "share >= 95.5%" # ERROR: needs 66 rounds at 95% confidence, because requests of one round may fail together; the plan has only 10. Either use seeds = range(1, 67) (if the plan sets requests, at least 66 for each request in flight), or write "observed >= 95.5%" to judge only the requests of this run. You may also lower
  }
  sla {
    severity = "warn"
    success  = "rate > 99%" # WARNING: needs 299 rounds
  }
}

workload "never" {
  input_tokens  = 1000
  output_tokens = 100
  load {
    concurrency = 8
    seeds       = range(1, 150)
  }
  sla { success = "rate >= 100%" } # ERROR: a sample cannot prove that every request succeeds. Write "observed >= 100%" or "every" to judge only the requests of the run, or allow a share of the requests to fail.
}

workload "many" {
  input_tokens  = 1000
  output_tokens = 100
  load { concurrency = 8 }
  sla { success = "rate >= 99.9%" } # ERROR: needs 2995 rounds at 95% confidence, because requests of one round may fail together; the plan has only 10. Either use seeds = concat(range(1, 1025), range(1025, 2049), range(2049, 2996)) (if the plan
}

workload "too_many" {
  input_tokens  = 1000
  output_tokens = 100
  load { concurrency = 8 }
  sla { success = "rate >= 99.99%" } # ERROR: needs 29956 rounds at 95% confidence, because requests of one round may fail together; the plan has only 10. Either use 29956 seeds (if the plan
}

# The last of three looks has 0.0258 of the error: ln 0.0258 / ln 0.98 = 181.0 and more.
workload "extended" {
  input_tokens  = 1000
  output_tokens = 100
  gate { on_inconclusive = "extend" }
  load {
    concurrency = 8
    seeds       = range(1, 46)
  }
  sla { success = "rate >= 98%" } # ERROR: needs 182 rounds at 97.4% confidence, because requests of one round may fail together; the plan has only 180. Either use seeds = range(1, 183)
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

workload "capacity" {
  input_tokens  = 1000
  output_tokens = 100
  capacity {
    up_to   = 64
    require = 20
  }
  sla { success = "rate >= 98%" } # ERROR: at capacity can never pass: needs 203 rounds at 98.3% confidence, because requests of one round may fail together; the plan has only 28. Either use seeds = range(1, 204) and requests = 4060 in the capacity block, or write "observed >= 98%" or "every" to judge only the requests of each probe. You may also lower
}

workload "enough" {
  input_tokens  = 1000
  output_tokens = 100
  good { ttft = "< 2s" }
  load {
    concurrency = 8
    seeds       = range(1, 150)
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
    concurrency = 8
    seeds       = range(1, 52) # 4 times 51 are 204
  }
  sla { success = "rate >= 98%" }
}

workload "bursts_enough" {
  input_tokens  = 1000
  output_tokens = 100
  load {
    burst  = 16
    bursts = 149
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
