variable "a" {
  default = 1
}

variable "a" { # ERROR: Duplicate name
  default = 2
}

variable "1st" { # ERROR: Invalid name
  default = 2
}

locals {
  x = var.a
}

locals {
  x = 2 # ERROR: Duplicate name
}

gate { # first
  measure_only = false
}

gate { # ERROR: Duplicate block
  measure_only = true
}

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
  endpoint { url = "http://127.0.0.1:8001" } # ERROR: Duplicate block
  flags = { x = 1, x = 2 } # ERROR: Duplicate name
}

server "s" { # ERROR: Duplicate name
  endpoint { url = "http://127.0.0.1:8000" }
}

server "my server" { # ERROR: Invalid name
  endpoint { url = "http://127.0.0.1:8000" }
}

server "p" {
  process {
    command = ["serve", "{port}"]
    env     = { "A=B" = "x" } # ERROR: Invalid name
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}

workload "w" { # ERROR: Duplicate name
}

workload "w/2" { # ERROR: Invalid name
}

assert "x" {
  condition     = result.s.w.level[8].failed == 0
  error_message = "x"
}

assert "x" { # ERROR: Duplicate name
  condition     = result.s.w.level[8].failed == 0
  error_message = "x"
}
