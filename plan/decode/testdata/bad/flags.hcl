variable "x" {
  default = "max-model-len"
}

server "s" {
  engine = "vllm"
  flags = {
    compilation-config.level = 3 # ERROR: Ambiguous key
  }
  endpoint { url = "http://127.0.0.1:8000" }
}

server "t" {
  engine = "vllm"
  flags = {
    var.x = 3 # ERROR: Ambiguous key
  }
  endpoint { url = "http://127.0.0.1:8000" }
}

server "u" {
  engine = "sglang"
  flags = {
    "--tp"               = 2     # ERROR: Invalid flag name
    "a b"                = 2     # ERROR: Invalid flag name
    enable-metrics       = false # ERROR: Invalid flag value
    no-x                 = false # ERROR: Invalid flag value
    empty                = []    # ERROR: Invalid flag value
    lora-paths           = [null] # ERROR: Invalid flag value
  }
  endpoint { url = "http://127.0.0.1:8000" }
}

server "v" {
  flags = "--x" # ERROR: Wrong type
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
