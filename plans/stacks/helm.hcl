# Two images of one Helm release, one after the other at one URL: is the new one as fast? Run it where
# helm and the URL work, such as in a pod of the cluster or behind its ingress.
#
#   tokgate run plans/stacks/helm.hcl --var url=http://llm.serving.svc:8000
#   tokgate run --simulate plans/stacks/helm.hcl        # without a cluster

variable "url" {
  type    = string
  default = "http://llm.serving.svc:8000"
}

variable "images" {
  type    = map(string)
  default = { today = "v0.19.1", next = "v0.20.0" }
}

server "llm" {
  for_each = var.images
  engine   = "vllm"

  stack {
    up       = ["helm", "upgrade", "--install", "--wait", "--timeout=15m", "--namespace=serving", "--set=image.tag=${each.value}", "llm", "./chart"]
    down     = ["helm", "uninstall", "--wait", "--ignore-not-found", "--namespace=serving", "llm"]
    logs     = ["kubectl", "logs", "--follow", "--namespace=serving", "--selector=app.kubernetes.io/instance=llm", "--tail=-1"]
    url      = var.url
    timeout  = "16m" # helm's own comes first, and says more
    declares = { image = each.value }
  }
  simulator {}
}

workload "chat" {
  input_tokens  = 512
  output_tokens = 128
  load { concurrency = 8 }
  sla { ttft = "p95 < 2s" }
}

compare "images" {
  control   = server.llm["today"]
  candidate = server.llm["next"]
  changed   = ["up", "declares"]
  tolerate {
    ttft       = "mean +5%"
    throughput = "-5%"
  }
}
