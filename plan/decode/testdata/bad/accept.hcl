history { folder = "nights" }

server "a" {
  simulator {}
}

server "b" {
  simulator { seed = 2 }
}

workload "chat" {
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = [1, 8]
    requests    = 160
  }
  good { ttft = "< 1s" }
  sla {
    ttft    = "p95 < 2s"
    success = "rate >= 98%"
  }
}

workload "json" {
  server        = server.a
  input_tokens  = 128
  output_tokens = { natural = true, max = 64 }
  load { concurrency = 8 }
  good { valid_json = "yes" }
  sla { goodput = "share >= 90%" }
}

compare "upgrade" {
  control   = server.a
  candidate = server.b
  restart   = "never"
  tolerate { ttft = "p95 +10%" }
  improve { throughput = "+5%" }
}

accept "no_reason" { # ERROR: Missing required argument
  ttft  = "p95 < 3s"
  until = "2027-01-31"
}

accept "empty" { # ERROR: Nothing to accept
  until = "2027-01-31"
  why   = "because"
}

accept "two" { # ERROR: Nothing to accept
  ttft    = "p95 < 3s"
  success = "rate >= 90%"
  until   = "2027-01-31"
  why     = "because"
}

accept "again" {
  ttft  = "p95 < 3s"
  until = "2027-01-31"
  why   = "because"
}

accept "again" { # ERROR: Duplicate name
  ttft  = "p95 < 3s"
  until = "2027-01-31"
  why   = "because"
}

accept "1st" { # ERROR: Invalid name
  ttft  = "p95 < 3s"
  until = "2027-01-31"
  why   = "because"
}

accept "dates" {
  ttft  = "p95 < 3s"
  until = "31.1.2027" # ERROR: Value out of range
  why   = " "         # ERROR: Missing setting
}

accept "stricter" { # ERROR: Nothing to accept
  ttft  = "p95 < 2s"
  until = "2027-01-31"
  why   = "because"
}

accept "another_stat" { # ERROR: Nothing to accept
  ttft  = "p50 < 3s"
  until = "2027-01-31"
  why   = "because"
}

accept "wrong" {
  accuracy = "rate >= 50%" # ERROR: Unsupported argument
  until    = "2027-01-31"
  why      = "because"
}

accept "wrong_share" { # ERROR: Nothing to accept
  workload = workload.json
  goodput  = "share >= 80%"
  until    = "2027-01-31"
  why      = "because"
}

accept "capacity" {
  capacity = "-10%" # ERROR: Nothing to accept
  until    = "2027-01-31"
  why      = "because"
}

accept "whose" {
  compare = compare.upgrad # ERROR: Nothing to accept
  ttft    = "p95 +12%"
  until   = "2027-01-31"
  why     = "because"
}

accept "text" {
  compare = "upgrade: all" # ERROR: Nothing to accept
  ttft    = "p95 +12%"
  until   = "2027-01-31"
  why     = "because"
}

accept "both" {
  compare = compare.upgrade # ERROR: Conflicting settings
  history = true
  ttft    = "p95 +12%"
  until   = "2027-01-31"
  why     = "because"
}

accept "elsewhere" {
  compare  = compare.upgrade
  workload = workload.json # ERROR: Nothing to compare
  ttft     = "p95 +12%"
  until    = "2027-01-31"
  why      = "because"
}

accept "level" {
  workload = workload.chat
  at       = 16 # ERROR: Unknown level
  ttft     = "p95 < 3s"
  until    = "2027-01-31"
  why      = "because"
}

accept "tolerated" { # ERROR: Nothing to accept
  compare = compare.upgrade
  ttft    = "p95 +5%"
  until   = "2027-01-31"
  why     = "because"
}

accept "never_compared" {
  history     = true
  preemptions = "mean +10%" # ERROR: Nothing to accept
  until       = "2027-01-31"
  why         = "because"
}

accept "fine" {
  compare    = compare.upgrade
  workload   = workload.chat
  throughput = "-2%"
  until      = "2027-01-31"
  why        = "because"
}
