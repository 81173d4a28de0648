# A server in a job of Slurm, on a node whose name is known, from a folder that both machines share.
# sbatch ends at once: `ready` waits for the queue and for the weights.
#
#   tokgate run plans/stacks/slurm.hcl --var node=gpu07
#   tokgate run --simulate plans/stacks/slurm.hcl        # without Slurm

variable "node" {
  type    = string
  default = "gpu07"
}

variable "model" {
  type    = string
  default = "Qwen/Qwen3-8B"
}

server "llm" {
  engine = "vllm"
  model  = var.model

  stack {
    up   = ["sbatch", "--job-name=tokgate-llm", "--nodelist=${var.node}", "--gpus=1", "--time=120", "--output=llm.log", "--wrap=exec vllm serve ${var.model} --port 8000"]
    down = ["scancel", "--me", "--name=tokgate-llm"]
    logs = ["tail", "--follow=name", "--retry", "llm.log"]
    url  = "http://${var.node}:8000"
  }
  ready { timeout = "2h" }
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
