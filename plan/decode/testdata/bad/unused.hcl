variable "image" { # WARNING: Unused variable
  default = "x"
}

server "used" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "unused" { # WARNING: Unused server
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
  server = server.used
}
