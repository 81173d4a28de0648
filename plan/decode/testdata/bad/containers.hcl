server "both" {
  endpoint { url = "http://127.0.0.1:8000" }
  container { # ERROR: Conflicting settings
    image = "x"
  }
}

server "no-image" {
  container { # ERROR: Missing required argument
  }
}

server "image" {
  container {
    image = "vllm/vllm openai" # ERROR: Invalid image
  }
}

server "model" {
  engine = "sglang"
  container { # ERROR: Missing setting
    image = "lmsysorg/sglang:v0.5.9"
  }
}

server "words" {
  container {
    image    = "x"
    runtime  = "dockre"           # ERROR: Unknown choice
    pull     = "sometimes"        # ERROR: Unknown choice
    shm_size = "much"             # ERROR: Value out of range
    volumes  = ["/data", "/a:/b"] # ERROR: Invalid volume
    env      = { "A=B" = "x" }    # ERROR: Invalid name
  }
}

server "options" {
  container {
    image   = "x"
    options = ["--ipc=host", "--gpus=all"] # ERROR: Conflicting settings
  }
}

server "restart" {
  container {
    image   = "x"
    options = ["--restart", "always"] # ERROR: Conflicting settings
  }
}

server "words-for-the-server" {
  container {
    image   = "x"
    options = ["serve"] # ERROR: Conflicting settings
  }
}

server "alone" {
  container {
    image   = "x"
    network = "none" # ERROR: Conflicting settings
  }
}

server "host" {
  container {
    image          = "x"
    network        = "host"
    container_port = 8000 # ERROR: Conflicting settings
  }
}

server "ports" {
  container {
    image          = "x"
    port           = 0     # ERROR: Value out of range
    container_port = 70000 # ERROR: Value out of range
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
