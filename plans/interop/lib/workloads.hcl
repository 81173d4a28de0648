# The workloads with which every engine is tried. The plans next to this folder include them.

workload "chat" {
  description   = "Exact lengths over chat completions"
  input_tokens  = 256
  output_tokens = 32
  load {
    concurrency = 4
    requests    = 40
    seeds       = [1, 2]
    timeout     = "2m"
  }
  sla { success = "every" }
}

workload "completions" {
  description   = "Exact lengths over text completions"
  api           = "completions"
  input_tokens  = 256
  output_tokens = 32
  load {
    concurrency = 4
    requests    = 40
    seeds       = [1, 2]
    timeout     = "2m"
  }
  sla { success = "every" }
}

workload "long" {
  description   = "A long prompt"
  input_tokens  = 8192
  output_tokens = 16
  load {
    concurrency = 1
    requests    = 4
    seeds       = [1, 2]
    warmup      = 1
    timeout     = "5m"
  }
  sla { success = "every" }
}

workload "natural" {
  description   = "Answers that end by themselves"
  input_tokens  = 256
  output_tokens = { natural = true, max = 400 }
  request {
    temperature = 0.8
  }
  load {
    concurrency = 4
    requests    = 16
    seeds       = [1, 2]
    timeout     = "5m"
  }
  sla { success = "every" }
}

workload "stop" {
  description   = "Answers that end at a stop sequence that few texts avoid for long"
  input_tokens  = 256
  output_tokens = { natural = true, max = 400 }
  request {
    stop = ["e ", "s ", "t ", "d "]
  }
  load {
    concurrency = 4
    requests    = 16
    seeds       = [1, 2]
    timeout     = "5m"
  }
  # An answer that begins with a stop sequence has no text, so it counts as failed.
  sla { success = "observed >= 75%" }
}

workload "burst" {
  description   = "More requests at once than most servers have slots"
  input_tokens  = 256
  output_tokens = 16
  load {
    burst   = 32
    bursts  = 3
    timeout = "5m"
  }
  sla { success = "every" }
}

workload "many" {
  description   = "Many short requests one after another: none may be lost to a reused connection"
  input_tokens  = 64
  output_tokens = 4
  load {
    concurrency = 8
    requests    = 400
    seeds       = [1, 2]
    timeout     = "2m"
  }
  sla { success = "every" }
}
