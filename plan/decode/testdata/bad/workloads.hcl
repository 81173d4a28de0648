server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "bare" { # ERROR: Missing setting # ERROR: Missing setting # ERROR: Workload has no load
  sla { success = "every" }
}

workload "headers-in-request" {
  input_tokens  = 1024
  output_tokens = 128
  headers       = { "X Team" = "a" } # ERROR: Value out of range
  request {
    headers = { X-Team = "a" } # ERROR: Conflicting settings
    timeout = 3
  }
  load { concurrency = [1] }
}

workload "numbers" {
  input_tokens  = 0    # ERROR: Value out of range
  output_tokens = "1K" # ERROR: Wrong type
  load { concurrency = [1] }
}

workload "jitter" {
  input_tokens  = 1024
  output_tokens = { mean = 128, jitter = "100%" } # ERROR: Value out of range
  load { concurrency = [1] }
}

workload "jitter-type" {
  input_tokens  = 1024
  output_tokens = { mean = 128, jitter = "lots" } # ERROR: Wrong type
  load { concurrency = [1] }
}

workload "keys" {
  input_tokens  = 1024
  output_tokens = { maen = 128 } # ERROR: Unknown choice
  load { concurrency = [1] }
}

workload "natural" {
  input_tokens  = 1024
  output_tokens = { natural = true, mean = 600 } # ERROR: Conflicting settings
  load { concurrency = [1] }
}

workload "natural-jitter" {
  input_tokens  = 1024
  output_tokens = { natural = true, max = 600, jitter = "5%" } # ERROR: Conflicting settings
  load { concurrency = [1] }
}

workload "api" {
  api           = "chats" # ERROR: Unknown choice
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1] }
}

workload "preset" {
  preset = "general_chatbott" # ERROR: Unknown preset
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1] }
}

workload "preset-far" {
  preset = "xyz" # ERROR: Unknown preset
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1] }
}

workload "mlperf" { # ERROR: Missing setting # ERROR: Missing setting
  preset = "mlperf_llama2_70b"
  load { concurrency = [1] }
}

workload "request" {
  input_tokens  = 1024
  output_tokens = 128
  request {
    temperature = 3    # ERROR: Value out of range
    max_tokens  = 100  # ERROR: Conflicting settings
    stop        = [{}] # ERROR: Wrong type
    seed        = 1
  }
  load { concurrency = [1] }
}
