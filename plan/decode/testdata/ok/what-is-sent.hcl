server "local" {
  endpoint {
    url       = "https://gateway.example/v1"
    ca_file   = "certs/ca.pem"
    served_as = "acme"
  }
}

workload "what_is_sent" {
  preset        = "general_chatbot"
  output_tokens = { natural = true, max = 600 }

  load {
    concurrency = 4
    warmup      = 0
    stagger     = "250ms"
    timeout     = "2m"
  }
  request {
    model                = "acme-lora"
    temperature          = 0.7
    stop                 = ["</s>"]
    chat_template_kwargs = { enable_thinking = false }
    top_k                = 20
  }
  good {
    ttft = "< 1.5s"
    tpot = "< 50ms"
  }
  sla {
    goodput = ["share >= 95%", "> 3 req/s"]
    speed   = "p5 > 8 tok/s"
  }
  gate {
    decide       = "estimate"
    confidence   = 0.9
    max_requests = 1000
  }
}
