# Null is as good as not set, so that a condition can leave a setting out.
variable "strict" {
  default = false
}

server "local" {
  model = null
  flags = null
  simulator { profile = null }
  ready { timeout = null }
}

workload "w" {
  for_each      = { closed = { levels = [1, 2], burst = null }, bursts = { levels = null, burst = [4] } }
  preset        = null
  server        = null
  input_tokens  = 128
  output_tokens = { mean = 16, jitter = null, max = null, natural = null }

  load {
    concurrency = each.value.levels
    burst       = each.value.burst
    bursts      = each.key == "bursts" ? 3 : null
    requests    = null
    seeds       = null
    warmup      = null
    stagger     = null
    pause       = null
    timeout     = null
  }
  sla {
    at      = null
    ttft    = var.strict ? "p95 < 1s" : null
    success = "every"
  }
  sla {
    tpot = var.strict ? "p95 < 10ms" : null
  }
  gate {
    decide       = null
    confidence   = null
    max_requests = null
  }
}
