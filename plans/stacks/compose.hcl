# A compose file on this machine, which takes the image from IMAGE. Its service needs a health check,
# because `up --wait` waits for that.
#
#   tokgate run plans/stacks/compose.hcl --var image=vllm/vllm-openai:v0.20.0
#   tokgate run --simulate plans/stacks/compose.hcl        # without docker

variable "image" {
  type    = string
  default = "vllm/vllm-openai:v0.19.1"
}

server "llm" {
  engine = "vllm"

  stack {
    up       = ["docker", "compose", "up", "--detach", "--wait", "--wait-timeout=900"]
    down     = ["docker", "compose", "down"]
    logs     = ["docker", "compose", "logs", "--follow", "--no-color", "--no-log-prefix"]
    env      = { IMAGE = var.image }
    url      = "http://127.0.0.1:8000"
    timeout  = "16m"
    declares = { image = var.image }
  }
  telemetry { gpus = [0] }
  simulator {}
}

workload "chat" {
  input_tokens  = 512
  output_tokens = 128
  load { concurrency = 8 }
  sla {
    ttft  = "p95 < 2s"
    speed = "mean > 20 tok/s"
  }
}
