# ENV: PORT=8123
# ENV: LEVEL=4
# ENV: MODEL=org/model-8b
# VAR: limit=250ms
variable "limit" {
  type      = string
  sensitive = true
}

server "s" {
  engine = "vllm"
  model  = env.MODEL
  process {
    command = ["serve", "{port}", env.MODEL]
    port    = tonumber(nonsensitive(env.PORT))
  }
}

workload "w" {
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = [tonumber(nonsensitive(env.LEVEL))]
    requests    = 300
  }
  sla { ttft = "p95 < ${nonsensitive(var.limit)}" }
}
