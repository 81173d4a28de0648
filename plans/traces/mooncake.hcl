# Does the server survive our traffic, and how much more of it? The trace beside this file
# is synthetic, in the format of Mooncake's: put your own in its place.
#
#   tokgate traffic plans/traces/mooncake-synthetic.jsonl   # what is in it
#   tokgate run --simulate plans/traces/mooncake.hcl

server "demo" {
  endpoint { url = "http://127.0.0.1:8000" }
  simulator { profile = "large.json" }
}

workload "conversation" {
  load {
    trace  = "mooncake-synthetic.jsonl"
    from   = "2m"
    to     = "5m"
    spread = "3s" # its times are rounded down to 3 s: sent as they are, they come in bursts
  }
  sla {
    ttft           = "p95 < 2s"
    speed          = "mean > 30 tok/s"
    cache_hit_rate = "> 25%" # a cache that is off, or too small, is red
  }
}
