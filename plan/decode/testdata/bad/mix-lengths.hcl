# Parts without lengths, in a mix that makes their requests up; and a part that no row is of.

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" { # ERROR: Missing setting # ERROR: Missing setting
  sla { success = "every" }
}

workload "long" {
  input_tokens  = 64
  output_tokens = 64
}

workload "production" {
  mix = { chat = "70%", long = "30%" }
  load {
    concurrency = 4
  }
}
