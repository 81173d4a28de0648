server "bare" {
  endpoint { url = "http://127.0.0.1:8000" }
  telemetry {
    prometheus { # ERROR: Missing setting
      url = "http://127.0.0.1:9090"
    }
  }
}

server "a-metric" {
  endpoint { url = "http://127.0.0.1:8000" }
  telemetry {
    prometheus {
      url = "127.0.0.1:9090" # ERROR: Invalid URL
      series "ttft" { # ERROR: Invalid name
        promql = "up"
      }
      series "severity" { # ERROR: Invalid name
        promql = "up"
      }
      series "requests" { # ERROR: Invalid name
        promql = "up"
      }
      series "no_query" { # ERROR: Missing required argument
        unit = "s"
      }
      series "queue" {
        promql = "sum(queue)"
        unit   = "furlongs" # ERROR: Unknown choice
        better = "lower"
      }
      series "lag" { # ERROR: Invalid name
        promql = "up"
      }
      series "copies" {
        promql = "count(up)"
        unit   = "requests"
      }
      series "copies" { # ERROR: Conflicting settings
        promql = "count(up)"
      }
    }
  }
}

server "another-unit" {
  endpoint { url = "http://127.0.0.1:8000" }
  telemetry {
    prometheus {
      url   = "http://127.0.0.1:9090"
      stale = "5" # ERROR: Invalid duration
      series "copies" { # ERROR: Conflicting settings
        promql = "count(up)"
      }
    }
  }
}

workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla {
    copies = "p95 < 3 requests" # ERROR: Statistic not allowed
    queue  = "max < 3"
    quiver = "max < 3" # ERROR: Unsupported argument
  }
}
