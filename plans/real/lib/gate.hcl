# A gate and a search, small enough for a model of random weights on two cores.

workload "gate" {
  description   = "Certified thresholds, alone and with four in flight"
  input_tokens  = 256
  output_tokens = 32
  load {
    concurrency = [1, 4]
    requests    = 100
    seeds       = [1, 2, 3, 4, 5]
    timeout     = "2m"
  }
  sla {
    at   = 4
    ttft = "mean < 3s" # a mean, because few rounds decide it even beside other work
    tpot = "mean < 200ms"
    e2e  = "mean < 10s"
  }
}

workload "carry" {
  description   = "How many requests in flight it carries"
  input_tokens  = 128
  output_tokens = { mean = 16, jitter = "25%" }
  sla {
    at   = "capacity"
    ttft = "mean < 1s"
  }
  capacity {
    from       = 4
    up_to      = 32
    resolution = 4
    budget     = "2m"
  }
}

workload "leaving" {
  description   = "What it keeps of 400 clients that leave"
  input_tokens  = 256
  output_tokens = 64
  load {
    concurrency = 4
    requests    = 100
    timeout     = "2m"
  }
  cancel {
    share        = "80%"
    after_tokens = 8
  }
  residue { severity = "warn" } # `make real-leaving` shows it; transformers serve reports nothing
}
