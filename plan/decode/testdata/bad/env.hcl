# RUN
variable "token" { # ERROR: No value for variable
  sensitive = true
}

server "s" {
  endpoint {
    url     = "http://127.0.0.1:8000"
    api_key = env.API_KEY # ERROR: Environment variable not set
    headers = { X = var.token }
  }
}
workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
