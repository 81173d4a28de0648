server "s" {
  endpoint {
    url     = "https://127.0.0.1:8000"
    ca_file = "../../door_test.go" # ERROR: Invalid certificate authority
  }
  simulator { profile = "../../../../sim/profiles/default.json" } # ERROR: Invalid profile
}

workload "w" {
  output_tokens = 64
  prompt {
    dataset = "../../../../traffic/testdata/prompts.jsonl" # ERROR: Unusable data set
  }
  load { concurrency = [1] }
  sla { success = "every" }
}

workload "t" {
  load {
    trace = "/proc/self/environ" # ERROR: Unusable trace
  }
  sla { success = "every" }
}
