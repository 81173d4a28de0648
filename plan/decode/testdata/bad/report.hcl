report {
  title = 7               # ERROR: Wrong type
  logo  = "report.hcl"    # ERROR: Value out of range
  notes = ["one", "two"]
  font  = "serif"         # ERROR: Unsupported argument
}

report {                  # ERROR: Duplicate block
  logo = "../../../../../../../etc/hostname"
}

server "mine" {
  simulator {}
}

workload "w" {
  preset            = "rag"
  users_per_request = [5, 4] # ERROR: Value out of range
  load {
    concurrency = 1
    title       = "rush hour" # ERROR: Wrong type
  }
}

workload "v" {
  preset            = "rag"
  users_per_request = [4] # ERROR: Value out of range
  load {
    concurrency = 1
  }
}

compare "twice" {
  for_each  = ["a"] # ERROR: Invalid for_each
  control   = server.mine
  candidate = server.mine
}
