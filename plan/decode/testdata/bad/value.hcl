server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}
locals {
  a = join("", [for i in range(1000) : "0123456789"])
  b = [for i in range(1000) : local.a] # ERROR: Value too large
}
workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
