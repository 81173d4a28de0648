# Recorded traffic on the built-in server over sockets, for `make replay`: are requests sent when
# they are due, 200 a second, and does a prefix cache find what the trace's blocks imply?

variable "url" {
  type        = string
  description = "Where the built-in server listens, with the profile of ../traces/large.json."
}

variable "times" {
  type        = string
  description = "A trace of 100 short requests a second."
}

server "sim" {
  engine = "vllm" # so that answers are as long as in the trace
  endpoint { url = var.url }
}

workload "times" {
  load {
    trace   = var.times
    columns = { time = "ts", input = "in", output = "out" }
    speedup = 2
  }
  sla {
    lag   = "p99 < 1ms"
    ttft  = "mean < 1s"
    speed = "mean > 1 tok/s"
  }
}

# The verdict on the load reports the share of hits that the blocks imply: 43.1 %.
workload "blocks" {
  load {
    trace  = "../traces/mooncake-synthetic.jsonl"
    from   = "2m"
    to     = "4m"
    spread = "3s"
  }
  sla {
    cache_hit_rate = "> 30%"
    ttft           = "mean < 5s"
    speed          = "mean > 1 tok/s"
  }
}
