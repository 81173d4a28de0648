# The recorded run of a mix in testdata/mix: tokgate run --simulate --out internal/studies/audit/testdata/mix internal/studies/audit/testdata/mix.hcl

gate {
  measure_only = true
}

server "sim" {
  simulator {}
}

workload "short" {
  input_tokens  = 64
  output_tokens = 4
}

workload "long" {
  input_tokens  = 512
  output_tokens = 4
}

workload "production" {
  mix = { short = "75%", long = "25%" }
  load {
    concurrency = 2
    requests    = 8
    seeds       = [1, 2]
  }
}
