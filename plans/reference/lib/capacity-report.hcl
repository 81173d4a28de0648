# Three capacity reports from one template measure a grid of contexts and requests in
# flight, and five use cases, each up to its limit. The plans that include this file
# set what differs between the reports: local.contexts, local.grid, local.use_cases
# and local.assumed.

locals {
  # Values are means over requests, as in the charts of the reports. For speed tokgate calls this
  # request_speed; its own speed is all tokens over their total time.
  thresholds = {
    code_completion    = { e2e = "mean < 2s", ttft = null, speed = null }
    short_form_chatbot = { e2e = null, ttft = "mean < 10s", speed = "mean > 10 tok/s" }
    general_chatbot    = { e2e = null, ttft = "mean < 8s", speed = "mean > 15 tok/s" }
    long_document      = { e2e = null, ttft = "mean < 12s", speed = "mean > 15 tok/s" }
    coding_assistant   = { e2e = null, ttft = "mean < 12s", speed = "mean > 20 tok/s" }
  }
  shown  = { for name, u in local.use_cases : name => u.past == null ? { e2e = null, ttft = null, speed = null } : local.thresholds[name] }
  limits = { code_completion = 200, short_form_chatbot = 250, general_chatbot = 80, long_document = 40, coding_assistant = 20 }
}

prices {
  electricity = 0.10 # price of a kilowatt-hour, as in the reports
}

workload "context" {
  for_each      = local.contexts
  description   = "Fresh context of ${each.key}"
  input_tokens  = each.value
  output_tokens = { mean = 1024, jitter = local.jitter }
  load {
    concurrency = local.grid
    requests    = local.published ? { for n in local.grid : n => max(20, n * local.assumed.requests_per_slot) } : null
    seeds       = local.published ? [42] : null
    warmup      = local.published ? 1 : null
    stagger     = local.published ? local.assumed.stagger : null
    pause       = local.published ? local.assumed.pause : null
    timeout     = "30m"
  }
  sla { success = "every" } # as published: 100 %
}

workload "use_case" {
  for_each      = local.use_cases
  preset        = each.key # sets contexts and thresholds
  output_tokens = { mean = each.key == "code_completion" ? 128 : 1024, jitter = local.jitter }
  load {
    concurrency = each.value.levels
    requests    = local.published ? { for n in each.value.levels : n => max(20, n * local.assumed.requests_per_slot) } : null
    seeds       = local.published ? [42] : null
    warmup      = local.published ? 1 : null
    stagger     = local.published ? local.assumed.stagger : null
    pause       = local.published ? local.assumed.pause : null
    timeout     = "30m"
  }
  # Levels that miss a threshold in the report too are shown, and fail nothing.
  sla {
    at       = each.value.past
    severity = "warn"
    ttft     = local.shown[each.key].ttft
    speed    = local.published ? null : local.shown[each.key].speed
    e2e      = local.shown[each.key].e2e

    request_speed = local.published ? local.shown[each.key].speed : null
  }
  sla {
    at            = concat([for n in each.value.levels : tostring(n) if !contains(coalesce(each.value.past, []), n)], ["capacity"])
    request_speed = local.published ? local.thresholds[each.key].speed : null
  }
  capacity {
    up_to      = local.limits[each.key]
    resolution = local.published ? null : "5%"
    requests   = local.published ? 20 : null # otherwise five for each slot, if that is more
    confirm    = !local.published
  }
}
