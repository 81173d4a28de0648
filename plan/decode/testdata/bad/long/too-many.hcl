server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "w" { # ERROR: Too many instances
  for_each      = { for i in setproduct(range(100), range(100)) : "${i[0]}-${i[1]}" => i }
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "one-more" { # ERROR: Too many instances
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1] }
}
