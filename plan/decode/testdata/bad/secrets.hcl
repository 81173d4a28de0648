# ENV: TOKEN=hf_q7xmz01234
# ENV: PORT=8000
# VAR: count=40
variable "count" {
  type      = number
  sensitive = true
}

variable "open" {
  type    = number
  default = 8
}

locals {
  piece = parseint(substr(env.TOKEN, 7, 3), 36)
}

server "s" {
  engine = "vllm"
  model  = env.TOKEN
  flags = {
    served-model-name = upper(env.TOKEN)
    max-num-seqs      = local.piece                  # ERROR: Secret not allowed here
    (env.TOKEN)       = true                         # ERROR: Invalid flag name
    enable-x          = env.TOKEN == "hf_q7xmz01234" # ERROR: Secret not allowed here
  }
  args = ["--x", lower(env.TOKEN)]
  process {
    command = ["serve", "{port}", "--key", env.TOKEN]
    env     = { TOKEN = env.TOKEN, PIECE = local.piece } # ERROR: Secret not allowed here
    port    = tonumber(env.PORT)                         # ERROR: Secret not allowed here
  }
  ready { timeout = "${env.PORT}ms" } # ERROR: Secret not allowed here
  telemetry {
    metrics_url = "http://127.0.0.1:8000/${env.TOKEN}"
    enabled     = env.TOKEN != ""                  # ERROR: Secret not allowed here
    require     = { throttled = "< ${env.PORT}%" } # ERROR: Secret not allowed here
  }
}

server "opened" {
  engine = "vllm"
  model  = "m"
  process {
    command = ["serve", "{port}"]
    port    = tonumber(nonsensitive(env.PORT))
  }
}

server "not-by-name" {
  endpoint {
    url = nonsensitive(upper(env.TOKEN)) # ERROR: Invalid function argument
  }
}

workload "w" {
  server        = server.s
  title         = env.TOKEN            # ERROR: Secret not allowed here
  input_tokens  = local.piece          # ERROR: Secret not allowed here
  output_tokens = { mean = var.count } # ERROR: Secret not allowed here
  request {
    user        = env.TOKEN
    temperature = tonumber(env.PORT) # ERROR: Secret not allowed here
  }
  load {
    concurrency = [1, nonsensitive(var.open), local.piece]                           # ERROR: Secret not allowed here
    seeds       = [for i in range(0, 2) : parseint(substr(env.TOKEN, 7 + i, 2), 36)] # ERROR: Secret not allowed here
    requests    = env.TOKEN == "hf_q7xmz01234" ? 111 : 222                           # ERROR: Secret not allowed here
    warmup      = env.TOKEN == "hf_q7xmz01234" ? null : 4                            # ERROR: Secret not allowed here
  }
  sla {
    ttft = "p95 < ${env.PORT}ms" # ERROR: Secret not allowed here
  }
}

assert "a" {
  condition     = result.s.w.level[1].failed < tonumber(env.PORT) # ERROR: Secret not allowed here
  error_message = "of ${env.TOKEN}"
}
