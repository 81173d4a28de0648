variable "token" {
  sensitive = true
  default   = "secret"
}

server "list" {
  for_each = ["a", "b"] # ERROR: Invalid for_each
  endpoint { url = "http://127.0.0.1:8000" }
}

server "number" {
  for_each = 3 # ERROR: Invalid for_each
  endpoint { url = "http://127.0.0.1:8000" }
}

server "numbers" {
  for_each = toset([1, 2]) # ERROR: Invalid for_each
  endpoint { url = "http://127.0.0.1:8000" }
}

server "key" {
  for_each = toset(["a b", "a\"b"]) # ERROR: Invalid for_each
  endpoint { url = "http://127.0.0.1:8000" }
}

server "secret" {
  for_each = toset([var.token]) # ERROR: Invalid for_each
  endpoint { url = "http://127.0.0.1:8000" }
}

server "unknown" {
  for_each = toset([env.NAME]) # ERROR: Invalid for_each
  endpoint { url = "http://127.0.0.1:8000" }
}

server "nowhere" {
  for_each = {} # WARNING: Empty for_each
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "nothing" {
  for_each      = {} # WARNING: Empty for_each
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = 1 }
}

server "vllm" {
  for_each = { off = null, on = 2 }
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" {
  server        = server.vllm["onn"]                 # ERROR: Undeclared reference
  input_tokens  = tonumber(nonsensitive(env.TOKENS)) # ERROR: Value not known
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
