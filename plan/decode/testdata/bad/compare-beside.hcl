server "x" {
  for_each = { one = ["0"], two = ["1"], three = ["2"] }
  process {
    command = ["serve", "--port", "{port}"]
    gpus    = each.value
  }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = 16
  load { concurrency = 4 }
  sla { ttft = "p95 < 8s" }
}

compare "two" { # ERROR: Conflicting settings
  control      = server.x["one"]
  candidate    = server.x["two"]
  side_by_side = true
  tolerate { ttft = "p95 +10%" }
}

compare "three" {
  control   = server.x["one"]
  candidate = server.x["three"]
  rounds    = 16
  changed   = ["gpus"]
  tolerate { ttft = "p95 +10%" }
}
