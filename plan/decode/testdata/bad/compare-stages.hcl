# After how many rounds a comparison is judged.
server "s" {
  for_each = toset(["a", "b", "c", "d", "e", "f", "g", "h"])
  simulator {}
}

workload "chat" {
  input_tokens  = 64
  output_tokens = 8
  load { concurrency = 2 }
}

compare "nothing_required" {
  control      = server.s["a"]
  candidate    = server.s["b"]
  least_rounds = 3 # ERROR: Conflicting settings
}

compare "first_after_last" {
  control      = server.s["c"]
  candidate    = server.s["d"]
  rounds       = 6
  least_rounds = 7 # ERROR: Value out of range
  tolerate {
    ttft = "p95 +10%"
  }
}

compare "too_few" {
  control   = server.s["e"]
  candidate = server.s["f"]
  rounds    = 2 # ERROR: Value out of range
  tolerate {
    ttft = "p95 +10%"
  }
}

compare "shared" {
  control   = server.s["g"]
  candidate = server.s["h"]
  tolerate {
    ttft = "p95 +10%"
  }
}

compare "shared_otherwise" { # ERROR: Conflicting settings
  control      = server.s["g"]
  candidate    = server.s["e"]
  least_rounds = 5
  tolerate {
    ttft = "p95 +10%"
  }
}
