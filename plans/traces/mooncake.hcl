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
    to     = "4m"
    spread = "3s" # its times are rounded down to 3 s: sent as they are, they come in bursts
  }
  sla {
    ttft           = "p95 < 2s"
    speed          = "mean > 30 tok/s"
    cache_hit_rate = "> 25%" # a cache that is off, or too small, is red
  }
  capacity {
    over       = "speedup"
    up_to      = 2
    require    = 1.5   # the gate: half as much again
    resolution = "40%" # each probe is a replay of the stretch: two minutes / speedup
    confirm    = false # or the answer is measured once more
  }
}
