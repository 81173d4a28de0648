server "both" {
  endpoint { url = "http://127.0.0.1:8000" }
  pod { # ERROR: Conflicting settings
    image = "x"
  }
}

server "no-image" {
  pod { # ERROR: Missing required argument
  }
}

server "words" {
  pod {
    image          = "vllm/vllm openai" # ERROR: Invalid image
    gpus           = 5000               # ERROR: Value out of range
    container_port = 70000              # ERROR: Value out of range
    namespace      = "Gates_1"          # ERROR: Value out of range
    env            = { "A=B" = "x" }    # ERROR: Invalid name
  }
}

server "model" {
  engine = "sglang"
  pod { # ERROR: Missing setting
    image = "lmsysorg/sglang:v0.5.9"
  }
}

server "absent" {
  pod {
    image    = "x"
    template = "lib/absent.yaml" # ERROR: Invalid template of a pod
  }
}

server "outside" {
  pod {
    image    = "x"
    template = "../../../../../../../../etc/passwd" # ERROR: Invalid template of a pod
  }
}

server "deployment" {
  pod {
    image    = "x"
    template = "lib/deployment.yaml" # ERROR: Invalid template of a pod
  }
}

server "empty" {
  pod {
    image    = "x"
    template = "lib/empty-pod.yaml" # ERROR: Invalid template of a pod
  }
}

server "at" {
  pod {
    image    = "x"
    template = "lib/pod-at.yaml" # ERROR: Invalid template of a pod
  }
}

server "control" {
  pod { image = "x" }
}

server "other" {
  process { command = ["serve", "--port", "{port}"] }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = 8 }
}

compare "sides" {
  control      = server.control
  candidate    = server.other
  side_by_side = true # ERROR: Conflicting settings
  tolerate { ttft = "p95 +5%" }
}
