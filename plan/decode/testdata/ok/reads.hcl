server "today" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "next" {
  endpoint { url = "http://127.0.0.1:8001" }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = 64
  load { concurrency = 8 }
}

compare "upgrade" {
  control   = server.today
  candidate = server.next
  answers {}
}

compare "bounds" {
  control   = server.today
  candidate = server.next
  answers {
    prompts    = 200
    max_tokens = 32
  }
  tolerate {
    odd_answers = "count +5"
    answer_nll  = "mean +0.1"
  }
}
