# What cannot be certified for one reason is said once, whatever the instances of a
# for_each it is true of.

server "sim" {
  for_each = { base = 0, a = 1, b = 2, c = 3 }
  simulator { seed = each.value }
}

workload "use" {
  for_each      = { chat = 1000, rag = 4000, code = 500 }
  server        = values(server.sim)
  input_tokens  = each.value
  output_tokens = 100
  load {
    concurrency = 4
    requests    = 40
    seeds       = [1, 2]
  }
  sla { ttft = "p99 < 9s" } # ERROR: needs 299 requests at 95% confidence; the plan has only 40. Raise requests. You may also lower confidence, or set decide = "estimate" in gate. Likewise for use["code"], for use["rag"].
}

compare "flags" {
  for_each  = { a = server.sim["a"], b = server.sim["b"], c = server.sim["c"] }
  control   = server.sim["base"]
  candidate = each.value
  changed   = ["profile"]
  tolerate {
    success = "rate -1pp" # ERROR: success rate -1pp of use["chat"] at 4 can never pass: even if no request failed on either server, there would be too few requests to certify the limit. Use more requests, more rounds, or a wider tolerance. Likewise success rate -1pp of use["code"] at 4 in compare.flags["a"], success rate -1pp of use["rag"] at 4 in compare.flags["a"], success rate -1pp of use["chat"] at 4 in compare.flags["b"], success rate -1pp of use["code"] at 4 in compare.flags["b"], and 4 more.
  }
}
