# From a recipe of srt-slurm.
#
#   tokgate plan gate.hcl             what would run, with every default
#   tokgate run --simulate gate.hcl   try the plan in seconds, without a server
#   tokgate run gate.hcl              gate the server
#
# A benchmark only measures. Until the sla blocks bound speed, this gate fails only if a request does:
# take bounds from the first report, or compare two servers with a compare block.
#
# Not carried over:
# - the servers: srtctl starts them. Run this plan as the recipe's benchmark: type: custom, command: tokgate run --var url=http://$SRT_FRONTEND_HOST:$SRT_FRONTEND_PORT PLAN
# - prompts of 0.8 to 1 times 1024 tokens: each prompt has the mean of these lengths

variable "url" {
  type    = string
  default = "http://127.0.0.1:8000"
}

server "under_test" {
  engine = "trtllm"
  model  = "example/model"

  endpoint {
    url = var.url
    # api_key = env.API_KEY # redacted everywhere
  }

  simulator {} # what --simulate uses instead
}

workload "in1024-out512" {
  api           = "completions"
  input_tokens  = 921
  output_tokens = { mean = 460, jitter = "11.1%" }

  load {
    concurrency = [4, 16]
    requests    = { 4 = 40, 16 = 160 }
  }

  sla {
    success = "every"
    # ttft  = "p99 < 2s"
    # speed = "mean > 20 tok/s"
  }
}

