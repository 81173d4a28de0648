# The servers and the tests of the A/B article on a DGX Spark. The plans that
# include this file set the seeds of each test: local.seeds.

variable "image" {
  type        = string
  default     = "vllm/vllm-openai:cu130-nightly"
  description = "The nightly image; the one of 2026-04-18 had the version below."
}

variable "version" {
  type        = string
  default     = "0.19.1rc1.dev328+g18013df6a"
  description = "The version of vLLM that must be found."
}

variable "lengths" {
  type        = string
  default     = "fixed"
  description = "fixed, as published, or jittered: answers within ±10 % of the length, which takes the slots out of lock-step and changes nothing else."
  validation {
    condition     = contains(["fixed", "jittered"], var.lengths)
    error_message = "Lengths are \"fixed\" or \"jittered\"."
  }
}

variable "simulator_seed" {
  type        = number
  default     = 1
  description = "With --simulate: what a server draws that decodes speculatively."
}

locals {
  spark = "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10"
  mtp   = { method = "qwen3_next_mtp", num_speculative_tokens = 2 }
  servers = {
    control = { model = "Qwen/Qwen3.5-35B-A3B-FP8", speculation = null, profile = "qwen3.5-35b-a3b-fp8.1x-dgx-spark-gb10.fresh" }
    vanilla = { model = "Qwen/Qwen3.6-35B-A3B-FP8", speculation = null, profile = "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.vanilla" }
    mtp     = { model = "Qwen/Qwen3.6-35B-A3B-FP8", speculation = local.mtp, profile = "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.mtp" }
  }

  # requests is the number for each seed. The article prints A's number, from which C's
  # follows. The numbers of B and D are assumed from the article's counters of drafts.
  tests = {
    A = { input = 512, output = 512, concurrency = 1, requests = 20, what = "single decode" }
    B = { input = 8192, output = 256, concurrency = 4, requests = 16, what = "prefill-bound" }
    C = { input = 2048, output = 512, concurrency = 16, requests = 64, what = "contention" }
    D = { input = 2048, output = 256, concurrency = 2, requests = 20, what = "chat" }
  }
}

server "spark" {
  for_each = local.servers
  engine   = "vllm"
  model    = each.value.model
  container {
    image = var.image
    gpus  = "all"
    env   = { VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS = "1" }
  }
  flags = {
    max-model-len          = 131072
    max-num-batched-tokens = 16384
    gpu-memory-utilization = 0.45
    max-num-seqs           = 32
    kv-cache-dtype         = "fp8_e4m3"
    enable-chunked-prefill = true
    enable-prefix-caching  = true
    async-scheduling       = false
    speculative-config     = each.value.speculation
  }
  expect { version = var.version }
  simulator {
    profile = each.value.profile
    seed    = var.simulator_seed
  }
  telemetry { interval = "5s" }
}

workload "test" {
  for_each      = local.tests
  description   = each.value.what
  input_tokens  = each.value.input
  output_tokens = { mean = each.value.output, jitter = var.lengths == "jittered" ? "10%" : local.jitter }
  load {
    concurrency = each.value.concurrency
    requests    = local.published ? each.value.requests * length(local.seeds[each.key]) : null
    seeds       = local.published ? local.seeds[each.key] : null
    warmup      = local.published ? 3 : null
    stagger     = local.published ? "2ms" : null
  }
  sla { success = "every" } # the article sets no thresholds
}
