# Compares three configurations of one server. `make browser` runs this plan.

locals {
  configurations = {
    base   = { title = "As it runs today", profile = "default" }
    wide   = { title = "Larger batches", profile = "wide.json" }
    drafts = { title = "With drafts", profile = "drafts.json" }
  }
}

gate { budget = "6h" }

report {
  title    = "Which flags for the assistant?"
  subtitle = "Three configurations of one server, on the same prompts"
}

server "vllm" {
  for_each = local.configurations
  title    = each.value.title
  simulator { profile = each.value.profile }
}

workload "chat" {
  title         = "Chat"
  description   = "A question of a page, answered in a paragraph."
  server        = values(server.vllm)
  input_tokens  = 512
  output_tokens = { mean = 64, jitter = "10%" }
  load {
    concurrency = [1, 4, 16, 48]
    requests    = { "1" = 80, "4" = 320, "16" = 640, "48" = 960 }
  }
  sla {
    at    = ["1", "4"]
    speed = "mean > 40 tok/s"
    ttft  = "p95 < 500ms"
  }
}

workload "documents" {
  title         = "Documents"
  description   = "Eight pages, summed up."
  server        = values(server.vllm)
  input_tokens  = 4096
  output_tokens = { mean = 128, jitter = "10%" }
  load {
    concurrency = [1, 4, 8]
    requests    = { "1" = 40, "4" = 160, "8" = 240 }
  }
}

compare "flags" {
  for_each  = { wide = server.vllm["wide"], drafts = server.vllm["drafts"] }
  control   = server.vllm["base"]
  candidate = each.value
  changed   = ["profile"]
  tolerate {
    throughput = "-10%"
    e2e        = "mean +10%"
  }
}
