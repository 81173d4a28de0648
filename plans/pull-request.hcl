# A gate on a GPU server that a pull request can also try without a GPU:
#
#   tokgate run --simulate plans/pull-request.hcl    # seconds: the plan, its levels, its search
#   tokgate run plans/pull-request.hcl --var url=http://gpu-host:8000
#
# The first command runs the profile that the simulator block names, in virtual time.
# It says nothing about the server, but shows that the plan works, what its reports
# look like, and how long the second command will take.

variable "url" {
  type        = string
  default     = "http://127.0.0.1:8000"
  description = "The server under test."
}

server "h100" {
  engine = "vllm"
  endpoint { url = var.url }
  simulator { profile = "qwen3.5-35b-a3b-fp8.1x-h100" }
}

workload "chat" {
  input_tokens  = 4096
  output_tokens = { mean = 256, jitter = "10%" } # answers of one length would all end together

  load {
    concurrency = [1, 16]
    requests    = { 1 = 20, default = 300 }
  }

  sla { # a little above what the server does today: a server slower by a quarter fails
    at    = 1
    ttft  = "mean < 256ms"     # simulated: 248 ms
    speed = "mean > 150 tok/s" # 170 tok/s
  }

  sla { # what users are promised
    at    = [16, "capacity"]
    ttft  = "p95 < 2s"
    speed = "mean > 40 tok/s"
  }

  capacity {
    from    = 32
    up_to   = 64
    require = 32 # the gate fails below this
    budget  = "2h"
  }
}
