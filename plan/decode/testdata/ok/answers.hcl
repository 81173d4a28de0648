server "today" {
  simulator {}
}

server "next" {
  simulator {}
}

workload "chat" {
  input_tokens  = 64
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 2 }

  good {
    repetition = "no"
    valid_json = "yes"
  }
  sla {
    goodput       = "share >= 80%"
    empty         = ["observed <= 0%", "rate <= 5%"]
    repetition    = "rate <= 5%"
    invalid_text  = "observed <= 0%"
    stop_rate     = "rate >= 50%"
    answer_tokens = "mean > 10 tokens"
  }
}

workload "recall" {
  input_tokens  = 4096
  output_tokens = { natural = true, max = 64 }
  prompt { dataset = "builtin:recall" }
  load {
    concurrency = 8
    requests    = 640
  }
  sla { accuracy = ["rate >= 80%", "observed >= 85%"] }
}

workload "pattern" {
  output_tokens = { natural = true, max = 64 }
  prompt { dataset = "builtin:arithmetic" }
  load { concurrency = 2 }
  score {
    match = { regex = "= (\\d+)", group = 1 }
  }
  sla { accuracy = "observed >= 85%" }
}

compare "upgrade" {
  control   = server.today
  candidate = server.next
  tolerate {
    throughput    = "-5%"
    empty         = "rate +1pp"
    valid_json    = "rate -2pp"
    answer_tokens = "mean +-20%"
    accuracy      = "rate -2pp"
  }
}
