# VAR: targets={ a = { url = "http://127.0.0.1:1" }, b = { url = "http://127.0.0.1:2", weight = 3 } }
# VAR: levels=[1, 2]
# VAR: url=http://first.example
# VARFILE: testdata/ok/lib/values.hcl
# VARFILE: testdata/ok/lib/values.json
# VAR: url=http://last.example
# ENV: TOKGATE_VAR_tokens=2048
# ENV: TOKGATE_VAR_url=http://env.example
# ENV: API_KEY=key-0123456789
variable "url" {
  type = string
}

variable "targets" {
  type = map(object({
    url    = string
    weight = optional(number, 1)
    note   = optional(string)
  }))
}

variable "levels" {
  type = list(number)
  validation {
    condition     = alltrue([for n in var.levels : n > 0])
    error_message = "Levels are positive."
  }
}

variable "tokens" {
  type = number
}

variable "limit" {
  default = "9s"
}

variable "password" {
  type      = string
  sensitive = true
}

variable "unset_secret" {
  sensitive = true
}

locals {
  total   = sum([for t in var.targets : t.weight])
  auth    = "Bearer ${var.password}"
  prompts = yamldecode(file("lib/data.yaml"))
}

server "named" {
  endpoint {
    url     = var.url
    api_key = env.API_KEY
    headers = {
      Authorization = local.auth
      X-Tenant      = env.NOT_SET_HERE
      X-Other       = var.unset_secret
    }
  }
}

server "target" {
  for_each = var.targets
  endpoint { url = each.value.url }
}

workload "w" {
  input_tokens  = var.tokens
  output_tokens = local.prompts.output * local.total
  load { concurrency = var.levels }
  sla { ttft = "p95 < ${try(var.limit, "1s")}" }
}
