# For which load is speculative decoding worth it? One server runs with and without
# multi-token prediction (MTP), on the same prompts and in turns (A B B A …), each
# round on a fresh server. The simulated profiles are fitted to a published A/B
# measurement on a DGX Spark, so this plan runs in virtual time, in seconds:
#
#   tokgate run --simulate plans/compare.hcl
#
# The report says for which workload the answer is yes.

gate {
  budget = "4h" # limits the wait for a server that hangs
}

locals {
  spark = "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10"
  speculation = {
    off = { config = null, profile = "${local.spark}.vanilla" }
    on  = { config = { method = "qwen3_next_mtp", num_speculative_tokens = 2 }, profile = "${local.spark}.mtp" }
  }
  tests = {
    single_decode = { input = 512, output = 512, concurrency = 1, requests = 10 }
    chat          = { input = 2048, output = 256, concurrency = 2, requests = 20 }
    stress        = { input = 2048, output = 512, concurrency = 16, requests = 48 }
    long_prefill  = { input = 8192, output = 32, concurrency = 4, requests = 20 }
  }
}

server "spark" {
  for_each = local.speculation
  engine   = "vllm"
  model    = "Qwen/Qwen3.6-35B-A3B-FP8"
  container {
    image = "vllm/vllm-openai:v0.19.1"
    gpus  = "all"
  }
  simulator { profile = each.value.profile } # --simulate uses this profile instead

  flags = {
    max-model-len      = 131072
    max-num-seqs       = 32
    speculative-config = each.value.config
  }
}

workload "test" {
  for_each      = local.tests
  input_tokens  = each.value.input
  output_tokens = { mean = each.value.output, jitter = "10%" } # answers of one length would all end together

  load {
    concurrency = each.value.concurrency
    requests    = 12 * each.value.requests # in all rounds together, on each server
  }
}

compare "mtp" {
  control   = server.spark["off"]
  candidate = server.spark["on"]
  rounds    = 12        # at most
  changed   = ["flags"] # what may differ; any other difference is an error

  improve { # it must pay off where one person waits
    workloads = workload.test["single_decode"]
    e2e       = "mean -4%"
  }
  tolerate { # and must not cost too much elsewhere
    workloads  = [workload.test["chat"], workload.test["stress"]]
    throughput = "-5%"
    ttft       = "mean +25%"
  }
} # long_prefill is only shown in the decision table
