server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

locals {
  outside = file("../../../../../../../../../etc/passwd") # ERROR: Invalid function argument
  absent  = file("lib/absent.txt")                       # ERROR: Invalid function argument
  wide    = format("%99999d", 1)                         # ERROR: Invalid function argument
  seconds = seconds("8")                                 # ERROR: Invalid function argument
}
workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
