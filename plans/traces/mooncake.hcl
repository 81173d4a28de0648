# Does the server survive our traffic, and how much more of it? The trace next to this file
# is synthetic, in Mooncake's format. Replace it by your own.
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
    to     = "4m40s"
    spread = "3s" # the trace's times are rounded down to 3 s; sent unchanged, requests would come in bursts
  }
  sla {
    ttft           = "p95 < 2s"
    speed          = "mean > 30 tok/s"
    cache_hit_rate = "> 25%" # the gate fails if the cache is off or too small
  }
  capacity {
    over       = "speedup"
    up_to      = 2
    require    = 1.5   # the gate requires one and a half times the traffic
    resolution = "40%" # each probe replays the stretch, in 160 s / speedup
    confirm    = false # true would measure the answer once more
  }
}
