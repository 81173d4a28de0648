server "none" { # ERROR: Missing setting
}

server "typo" {
  simulatr {} # ERROR: Unsupported block type
}

server "both" {
  endpoint { url = "http://127.0.0.1:8000" }
  process { # ERROR: Conflicting settings
    command = ["serve", "--port", "{port}"]
  }
}

server "engine" {
  engine = "vlm" # ERROR: Unknown choice
  endpoint { url = "http://127.0.0.1:8000" }
}

server "scheme" {
  endpoint { url = "127.0.0.1:8000" } # ERROR: Invalid URL
}

server "ftp" {
  endpoint { url = "ftp://127.0.0.1" } # ERROR: Invalid URL
}

server "host" {
  endpoint { url = "http://" } # ERROR: Invalid URL
}

server "credentials" {
  endpoint { url = "http://me:secret@127.0.0.1" } # ERROR: Invalid URL
}

server "query" {
  endpoint { url = "http://127.0.0.1/?a=b" } # ERROR: Invalid URL
}

server "control" {
  endpoint { url = "http://127.0.0.1/\n" } # ERROR: Invalid URL
}

server "missing" {
  endpoint { # ERROR: Missing setting
  }
}

server "null" {
  endpoint { url = null } # ERROR: Missing setting
}

server "number" {
  endpoint { url = 8000 } # ERROR: Wrong type
}

server "headers" {
  endpoint {
    url     = "http://127.0.0.1:8000"
    headers = { "bad header" = "x" } # ERROR: Value out of range
  }
}

server "headers-type" {
  endpoint {
    url     = "http://127.0.0.1:8000"
    headers = ["x"] # ERROR: Wrong type
  }
}

server "port" {
  process {
    command = ["serve", "--quick"] # ERROR: Port unknown to the command
  }
}

server "command" {
  process {
    command = [] # ERROR: Missing setting
    port    = 8000
  }
}

server "launcher" {
  process {} # ERROR: Missing setting
}

server "no-model" {
  engine = "vllm"
  process {} # ERROR: Missing setting
}

server "gpus" {
  process {
    command = ["serve", "--port", "{port}"]
    gpus    = "some" # ERROR: Invalid GPUs
  }
}

server "gpus-many" {
  process {
    command = ["serve", "--port", "{port}"]
    gpus    = 1000 # ERROR: Value out of range
  }
}

server "gpus-part" {
  process {
    command = ["serve", "--port", "{port}"]
    gpus    = 0.5 # ERROR: Value out of range
  }
}

server "gpus-list" {
  process {
    command = ["serve", "--port", "{port}"]
    gpus    = ["0", "all", "0"] # ERROR: Invalid GPUs # ERROR: Duplicate name
  }
}

server "gpus-empty" {
  process {
    command = ["serve", "--port", "{port}"]
    gpus    = [] # ERROR: Invalid GPUs
  }
}

server "port-range" {
  process {
    command = ["serve"]
    port    = 123456 # ERROR: Value out of range
  }
}

server "expect" {
  endpoint { url = "http://127.0.0.1:8000" }
  expect {
    gpus    = "1 x H100" # ERROR: Unknown choice
    version = "0.19.1"
  }
}

server "ready" {
  endpoint { url = "http://127.0.0.1:8000" }
  ready { timeout = 20 } # ERROR: Missing unit
}

server "ready-word" {
  endpoint { url = "http://127.0.0.1:8000" }
  ready { timeout = "soon" } # ERROR: Invalid duration
}

server "ready-long" {
  endpoint { url = "http://127.0.0.1:8000" }
  ready { timeout = "9000h" } # ERROR: Value out of range
}

server "ready-type" {
  endpoint { url = "http://127.0.0.1:8000" }
  ready { timeout = true } # ERROR: Wrong type
}

workload "w" {
  server        = server.none
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}

workload "text" {
  server        = "engine" # ERROR: Invalid server reference
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
}

workload "number" {
  server        = 7 # ERROR: Invalid server reference
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
}

workload "twice" {
  server        = [server.none, server.none] # ERROR: Invalid server reference
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
}

workload "typo" {
  server        = server.engin # ERROR: Undeclared reference
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
}
