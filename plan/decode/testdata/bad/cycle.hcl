server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

locals {
  a = local.b # ERROR: Cycle in locals
  b = local.c + 1
  c = sum([for x in [1] : local.a])
  d = local.d # ERROR: Cycle in locals
}
workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
