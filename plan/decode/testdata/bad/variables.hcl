# VAR: number=many
# VAR: nmber=3
# VAR: nothing
# VAR: list=[1,
# VAR: short=ab
# VAR: huge=1e999999
# VARFILE: testdata/bad/lib/values.hcl
# VARFILE: testdata/bad/lib/absent.hcl
# VARFILE: testdata/bad/lib/blocks.hcl
# ENV: TOKGATE_VAR_other_plan=1
# ENV: TOKGATE_VAR_from_env=x
variable "number" { # ERROR: Invalid value for variable
  type = number
}

variable "required" { # ERROR: No value for variable
  description = "Which."
}

variable "list" {
  type = list(number)
}

variable "bad_default" {
  type    = number
  default = "x" # ERROR: Invalid value for variable
}

variable "bad_type" {
  type    = strin # ERROR: Invalid type specification
  default = "x"
}

variable "short" { # ERROR: Invalid value for variable
  type = string
  validation {
    condition     = length(regexall("^.{3,}$", var.short)) > 0
    error_message = "At least three letters."
  }
  validation {
    condition     = "maybe" # ERROR: Condition is not true or false
    error_message = "x"
  }
}

variable "huge" { # ERROR: Number out of range
  type = number
}

variable "from_file" {
  type    = number
  default = 1
}

variable "constant" {
  default = 1
}

variable "from_env" { # ERROR: Invalid value for variable
  type = bool
}

server "s" {
  endpoint { url = "http://127.0.0.1:8000" }
}
workload "w" {
  input_tokens  = 1024
  output_tokens = 128
  load { concurrency = [1, 8] }
  sla { success = "every" }
}
