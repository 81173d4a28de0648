# The conditions under which the plans of this folder measure: those of the reports,
# as far as these state them, or tokgate's defaults.

variable "conditions" {
  type        = string
  default     = "published"
  description = "published: point estimates over the whole test, equal lengths, one seed. tokgate: certified verdicts over the steady window, jittered lengths, ten seeds."
  validation {
    condition     = contains(["published", "tokgate"], var.conditions)
    error_message = "Conditions are \"published\" or \"tokgate\"."
  }
}

locals {
  published = var.conditions == "published"
  jitter    = local.published ? "0%" : "5%" # answers of one length would all end together
}

gate {
  decide = local.published ? "estimate" : "certified"
  window = local.published ? "all" : "steady"
}
