server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

variable "image" {
  default = var.other # ERROR: Reference not available here
}

variable "tag" {
  default = "x"
  validation {
    condition     = local.a == "x" # ERROR: Reference not available here
    error_message = "No."
  }
}

locals {
  a = var.imag    # ERROR: Undeclared reference
  b = var         # ERROR: Undeclared reference
  c = local.aa    # ERROR: Undeclared reference
  d = server.s    # ERROR: Reference not available here
  e = each.key    # ERROR: Reference not available here
  f = result.x    # ERROR: Reference not available here
  g = vra.image   # ERROR: Unknown reference
  h = env         # ERROR: Unknown reference
  i = upper(1, 2) # ERROR: Too many function arguments
  j = uper("x")   # ERROR: Call to unknown function
  k = 1 + "a"     # ERROR: Invalid operand
  l = local.d.x
}

workload "w" {
  for_each      = toset(["a"])
  description   = each.valu # ERROR: Undeclared reference
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}

# What follows from another problem is not a problem of its own.
workload "follows" {
  server        = local.a
  input_tokens  = local.a
  output_tokens = { mean = local.a }
  load {
    concurrency = local.a
    requests    = local.a
    seeds       = [local.a]
    pause       = local.a
  }
  sla {
    at   = local.a
    ttft = local.a
  }
}
