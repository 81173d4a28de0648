server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}

server "two" {
  for_each = { "on" = 1, "off" = 2 }
  endpoint { url = "http://127.0.0.1:8000" }
}

workload "chat" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  load { burst = 8 }
}

assert "level" {
  condition     = result.s.chat.level[3].ttft.p95 < 2 # ERROR: Unknown result
  error_message = "x"
}

assert "server" {
  condition     = result.chat.level[1].ttft.p95 < 2 # ERROR: Unknown result
  error_message = "x"
}

assert "metric" {
  condition     = result.s.chat.level[1].tfft.p95 < 2 # ERROR: Unknown result
  error_message = "x"
}

assert "statistic" {
  condition     = result.s.chat.level[1].ttft.p955 < 2 # ERROR: Unknown result
  error_message = "x"
}

assert "level-wide" {
  condition     = result.s.chat.level[1].throughput.mean > 2 # ERROR: Unknown result
  error_message = "x"
}

assert "percentile" {
  condition     = result.s.chat.level[1].ttft.p99.9 < 2 # ERROR: Percentile with a decimal point
  error_message = "x"
}

assert "instance" {
  condition     = result.two["onn"].chat.level["burst 8"].ttft.p99 < 2 # ERROR: Unknown result
  error_message = "x"
}

assert "number" {
  condition     = result.s.chat.level[1].ttft.p95 # ERROR: Condition is not true or false
  error_message = "x"
}

assert "constant" {
  condition     = 1 < 2 # ERROR: Assert uses no result
  error_message = "x"
}

assert "message" {
  condition     = result.s.chat.level[1].failed == 0
  error_message = 7 # ERROR: Wrong type
}

assert "operand" {
  condition     = result.s.chat.level[1].ttft.p95 < "2s" # ERROR: Invalid operand
  error_message = "x"
}

assert "loop" {
  condition     = alltrue([for l in result.s.chat.level : l.tfft.p95 < 2]) # ERROR: Unsupported attribute
  error_message = "x"
}

workload "searched" {
  input_tokens  = 1024
  output_tokens = 128
  capacity {
    over  = "concurrency"
    up_to = 8
  }
  sla { ttft = "p95 < 2s" }
}

assert "over nothing" {
  condition     = alltrue([for l in result.s.searched.level : l.ttft.p95 < 2]) # ERROR: Assert over an empty list
  error_message = "x"
}

assert "none of nothing" {
  condition     = length(values(result.s.searched.level)[*]) == 0 # ERROR: Assert over an empty list
  error_message = "x"
}
