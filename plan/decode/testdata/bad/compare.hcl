server "a" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "b" {
  endpoint { url = "http://127.0.0.1:8001" }
}

server "c" {
  for_each = toset(["on", "off"])
  engine   = "vllm"
  process { command = ["vllm", "serve", "--port", "{port}"] }
  flags = { speculative-config = each.key }
}

server "p" {
  process {
    command = ["serve"]
    port    = 9000
  }
}

server "q" {
  process {
    command = ["serve"]
    port    = 9000
  }
}

server "g" {
  for_each = toset(["a", "b"])
  engine   = "vllm"
  model    = "m"
  container {
    image = "vllm/vllm-openai:v0.19.1"
    gpus  = ["0"]
  }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = [1, 8]
    requests    = { 8 = 40 }
  }
  good { ttft = "< 1s" }
  sla { ttft = "p95 < 8s" }
  capacity { up_to = 64 }
}

workload "alone" {
  server        = server.a
  input_tokens  = 128
  output_tokens = 16
  load { concurrency = 4 }
  sla { ttft = "p95 < 8s" }
}

locals {
  base = base.server.a    # ERROR: Reference not available here
  work = workload.chat    # ERROR: Reference not available here
}

compare "empty" { # ERROR: Missing required argument # ERROR: Missing required argument
}

compare "self" {
  control   = server.a
  candidate = server.a # ERROR: Nothing to compare
}

compare "names" {
  control   = server.nobody # ERROR: Undeclared reference
  candidate = server.c      # ERROR: Invalid server reference
}

compare "text" {
  control   = "a" # ERROR: Invalid server reference
  candidate = 3   # ERROR: Invalid server reference
}

compare "where" {
  control   = baseline()    # ERROR: Missing setting
  candidate = base.server.a # ERROR: Reference not available here
}

compare "branch" {
  control   = base.a # ERROR: Invalid server reference
  candidate = server.a
}

compare "recorded" {
  control   = baseline("perf/2026-11-19")
  candidate = server.c["on"]
  restart   = "leg" # ERROR: Conflicting settings
}

compare "settings" {
  control   = server.a
  candidate = server.b
  rounds    = 4      # ERROR: Value out of range
  restart   = "leg"  # ERROR: Conflicting settings
  changed   = [{}]   # ERROR: Wrong type
}

compare "odd" {
  control   = server.c["off"]
  candidate = server.c["on"]
  rounds    = 2       # ERROR: Value out of range
  restart   = "order" # ERROR: Unknown choice
  changed   = ["flags"]
}

compare "choice" {
  control   = server.c["off"]
  candidate = server.c["on"]
  restart   = "always" # ERROR: Unknown choice
}

compare "port" {
  control   = server.p
  candidate = server.q
  restart   = "never" # ERROR: Conflicting settings
}

compare "gpu" {
  control   = server.g["a"]
  candidate = server.g["b"]
  restart   = "never" # ERROR: Conflicting settings
}

server "x" {
  for_each = { one = ["2"], two = ["3", "4"], same = ["2"], any = 1, fine = ["5"] }
  engine   = "vllm"
  process {
    command = ["vllm", "serve", "--port", "{port}"]
    gpus    = each.value
  }
}

server "y" {
  for_each = { one = ["6"], two = ["7"] }
  process {
    command = ["serve"]
    port    = 9001
    gpus    = each.value
  }
}

compare "beside_endpoints" {
  control      = server.a
  candidate    = server.b
  side_by_side = true # ERROR: Conflicting settings
}

compare "beside_record" {
  control      = baseline("perf/2026-11-19")
  candidate    = server.x["fine"]
  side_by_side = true # ERROR: Conflicting settings
}

compare "beside_none" {
  control      = server.x["one"]
  candidate    = server.c["on"]
  side_by_side = true # ERROR: Conflicting settings
  changed      = ["flags", "gpus"]
}

compare "beside_any" {
  control      = server.x["one"]
  candidate    = server.x["any"]
  side_by_side = true # ERROR: Conflicting settings
  changed      = ["gpus"]
}

compare "beside_same" {
  control      = server.x["one"]
  candidate    = server.x["same"]
  side_by_side = true # ERROR: Conflicting settings
}

compare "beside_more" {
  control      = server.x["one"]
  candidate    = server.x["two"]
  side_by_side = true # ERROR: Conflicting settings
}

compare "beside_port" {
  control      = server.y["one"]
  candidate    = server.y["two"]
  side_by_side = true # ERROR: Conflicting settings
}

compare "beside_never" {
  control      = server.x["one"]
  candidate    = server.x["fine"]
  restart      = "never"
  side_by_side = true # ERROR: Conflicting settings
}

compare "beside_odd" {
  control      = server.x["one"]
  candidate    = server.x["fine"]
  rounds       = 11 # ERROR: Value out of range
  side_by_side = true
}

compare "beside_few" {
  control      = server.x["one"]
  candidate    = server.x["fine"]
  rounds       = 4 # ERROR: Value out of range
  side_by_side = true
}

compare "few" { # ERROR: Too few requests
  control   = server.a
  candidate = server.b
}

compare "few" { # ERROR: Duplicate name
  control   = server.a
  candidate = server.b
}

compare "turns" { # ERROR: Conflicting settings # ERROR: Too few requests
  control   = server.a
  candidate = server.b
  rounds    = 9
}

compare "flags" { # ERROR: Too few requests
  control   = server.c["off"]
  candidate = server.c["on"]
  changed   = ["args"] # ERROR: Difference not listed in changed
  tolerate {
    workloads = [workload.chat, workload.chat] # ERROR: Duplicate name
    at        = [8, 8, 9, "capacity"]          # ERROR: Duplicate level # ERROR: Unknown level # ERROR: Unknown level
    severity  = "high"                         # ERROR: Unknown choice
    ttft      = "p95 +10%"
  }
  tolerate {
    workloads = [workload.alone, "chat"] # ERROR: Nothing to compare # ERROR: Wrong type
    ttft      = "p95 +10%"
  }
  tolerate { # ERROR: Block requires nothing
  }
  tolerate {
    ttft       = "+10%"                 # ERROR: Missing statistic
    e2e        = "p95 10%"              # ERROR: Invalid change
    speed      = ["mean -5%", "mean -6%"] # ERROR: Duplicate threshold
    itl        = "p95 +x%"              # ERROR: Invalid change
    tpot       = "mean < 5%"            # ERROR: Invalid change
    throughput = "+5%"                  # ERROR: Threshold points the wrong way
    success    = "rate -1%"             # ERROR: Wrong unit
    goodput    = "share -2"             # ERROR: Missing unit
    capacity   = 15                     # ERROR: Missing unit
    ttfa       = "max +10%"             # ERROR: Statistic not allowed
    e2e_speed  = "mean -100%"           # ERROR: Value out of range
    request_rate = "-0%"                # ERROR: Value out of range
    synchrony  = "-5pp"                 # ERROR: Unsupported argument
    lag        = "p95 +5%"              # ERROR: Unsupported argument
  }
  improve {
    throughput = "-5%" # ERROR: Threshold points the wrong way
    ttft       = "p95 -5pp" # ERROR: Wrong unit
  }
}
