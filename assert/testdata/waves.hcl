# Shares that the planned waves can never certify, where whole waves are taken to fail
# together, and some that they can. "tokgate validate" reports them where they are marked.

server "sim" {
  simulator {}
}

workload "too_few" {
  input_tokens  = 1000
  output_tokens = 100
  good { ttft = "< 2s" }
  load { concurrency = [4, 8] }
  sla {
    success = "rate >= 98%"    # ERROR: needs 149 waves of 4 at 95% confidence, because requests that are in flight together may fail together; the plan has only 50. Likewise at 8. Either use waves = 149, or write "observed >= 98%" or "every" to judge only the requests of this run. You may also lower
    goodput = "share >= 95.5%" # ERROR: needs 66 waves of 4 at 95% confidence
  }
}

# The last of three looks has 0.0258 of the error: ln 0.0258 / ln 0.98 = 181.0 and more.
workload "extended" {
  input_tokens  = 1000
  output_tokens = 100
  gate { on_inconclusive = "extend" }
  load {
    concurrency = 8
    requests    = 360
  }
  sla { success = "rate >= 98%" } # ERROR: needs 182 waves of 8 at 97.4% confidence, because requests that are in flight together may fail together; the plan has only 180. Either use waves = 182
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

workload "alone" {
  input_tokens  = 1000
  output_tokens = 100
  gate { clusters = "none" }
  load {
    concurrency = 8
    requests    = 140
  }
  sla { success = "rate >= 98%" } # ERROR: needs 149 requests at 95% confidence; the plan has only 140. Either use requests = 149, or write
}

workload "capacity" {
  input_tokens  = 1000
  output_tokens = 100
  capacity {
    up_to        = 64
    require      = 20
    max_requests = 2000
  }
  sla { success = "rate >= 98%" } # ERROR: at capacity can never pass: needs 167 waves of 20 at 96.6% confidence, because requests that are in flight together may fail together; the plan has only 40. Either use requests = 3340 in the capacity block, or write "observed >= 98%" or "every" to judge only the requests of each probe. You may also lower
}

workload "enough" {
  input_tokens  = 1000
  output_tokens = 100
  good { ttft = "< 2s" }
  load {
    concurrency = 8
    requests    = 8 * 149
  }
  sla {
    success = ["rate >= 98%", "observed >= 99.9%", "every"]
    goodput = ["share >= 98%", "observed >= 99.9%"]
  }
}

workload "alone_enough" {
  input_tokens  = 1000
  output_tokens = 100
  gate { clusters = "none" }
  load { concurrency = 8 }
  sla { success = "rate >= 98%" }
}

workload "by_time" {
  input_tokens  = 1000
  output_tokens = 100
  load {
    concurrency = 8
    duration    = "10m"
  }
  sla { success = "rate >= 98%" }
}
