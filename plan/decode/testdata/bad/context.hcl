server "vllm" {
  engine = "vllm"
  flags  = { max-model-len = "32K" }
  endpoint { url = "http://127.0.0.1:8000" }
}

server "sglang" {
  engine = "sglang"
  flags  = { context-length = 32768 }
  endpoint { url = "http://127.0.0.1:8000" }
}

server "llama" {
  engine = "llama.cpp"
  flags  = { ctx-size = 131072, parallel = 4 }
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "fits" {
  input_tokens  = 32768 - 128
  output_tokens = 128
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "jitter" {
  input_tokens  = 32768 - 128 # ERROR: Context longer than the server allows # ERROR: Context longer than the server allows # ERROR: Context longer than the server allows
  output_tokens = { mean = 128, jitter = 0.01 }
  load { concurrency = [1] }
}
