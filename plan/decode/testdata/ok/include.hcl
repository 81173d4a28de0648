include = ["lib/servers.hcl", "lib/gate.hcl.json"]

workload "w" {
  server        = server.shared
  input_tokens  = local.context
  output_tokens = 64
  load { concurrency = 2 }
  sla { success = "every" }
}
