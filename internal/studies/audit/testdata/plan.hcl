# What testdata/run was recorded from: tokgate run --simulate --out internal/studies/audit/testdata/run internal/studies/audit/testdata/plan.hcl
gate {
  decide = "estimate"
}

server "s" {
  simulator {}
}

workload "w" {
  input_tokens  = 64
  output_tokens = 8
  load {
    concurrency = [1, 2]
    requests    = 8
    seeds       = [1, 2]
    pause       = "10ms"
  }
  load {
    burst  = 3
    bursts = 2
  }
  sla {
    ttft    = "p95 < 1s"
    speed   = "mean > 1 tok/s"
    success = "observed >= 90%"
  }
}
