server "half" {
  stack {                   # ERROR: Missing required argument
    up  = []                # ERROR: Missing setting
    url = "llm.example.org" # ERROR: Invalid URL
  }
}

server "empty" {
  stack {
    up   = [""] # ERROR: Missing setting
    down = ["helm", "uninstall", "llm"]
    url  = "http://127.0.0.1:8000"
    env  = { "A=B" = "x" } # ERROR: Invalid name
    logs = []              # ERROR: Missing setting
  }
}

server "both" {
  endpoint { url = "http://127.0.0.1:8000" }
  stack { # ERROR: Conflicting settings
    up   = ["./up"]
    down = ["./down"]
    url  = "http://127.0.0.1:8000"
  }
}

server "blue" {
  stack {
    up   = ["./up", "blue"]
    down = ["./down"]
    url  = "http://127.0.0.1:8001"
  }
}

server "green" {
  stack {
    up       = ["./up", "green"]
    down     = ["./down"]
    url      = "http://127.0.0.1:8001"
    dir      = "green"
    declares = { image = "v2" }
  }
}

workload "w" {
  server        = [server.half, server.empty, server.blue, server.green]
  input_tokens  = 8
  output_tokens = 8
  load { concurrency = [1] }
  sla { ttft = "p95 < 1s" }
}

compare "undeclared" {
  control   = server.blue
  candidate = server.green
  changed   = ["env"] # ERROR: Difference not listed in changed
  tolerate { ttft = "mean +5%" }
}

compare "together" {
  control   = server.blue
  candidate = server.green
  changed   = ["up", "declares"]
  restart   = "never" # ERROR: Conflicting settings
  tolerate { ttft = "mean +5%" }
}
