# Is the new version worse for our load? This gate is for an upgrade of the engine, the
# driver, the image or a flag: it compares today's server with tomorrow's, on the same
# prompts and in turns. Here both are the built-in server, in virtual time. The first
# command compares it with itself, the second with a server whose steps take 15 % longer.
#
#   tokgate run --simulate plans/upgrade.hcl
#   tokgate run --simulate plans/upgrade.hcl --var next=profiles/slower.json   # exit 1: it is slower
#
# To gate your own upgrade, replace the simulators by containers with two
# images. In a pull request the control can be the server of the base branch:
# control = base.server.next, and --base with a checkout of that branch.

variable "next" {
  type        = string
  default     = "profiles/today.json"
  description = "The profile of the candidate."
}

server "today" {
  simulator { profile = "profiles/today.json" }
}

server "next" {
  simulator { profile = var.next }
}

workload "chat" {
  input_tokens  = 512
  output_tokens = { mean = 64, jitter = "10%" } # answers of one length would all end together

  load {
    concurrency = 8
    requests    = 12 * 200 # on each server: 200 in each of at most twelve rounds
  }

  sla { # judged on the candidate only
    ttft = "p95 < 2s"
  }
}

compare "upgrade" {
  control   = server.today
  candidate = server.next
  changed   = ["profile"] # with containers: ["image"]
  rounds    = 12          # at most: it ends when it is decided, after three rounds at the earliest

  tolerate {
    throughput = "-5%"
    ttft       = "mean +5%"
    e2e        = "mean +5%"
    success    = "rate -1pp"
  }
}
