# From the perf-eval recipe example-h200.
#
#   tokgate plan gate.hcl             what would run, with every default
#   tokgate run --simulate gate.hcl   try the plan in seconds, without a server
#   tokgate run gate.hcl              gate the server
#
# A benchmark only measures. Until the sla blocks bound speed, this gate fails only if a request does:
# take bounds from the first report, or compare two servers with a compare block.
#
# Not carried over:
# - the environment that lib/gpu_profiles.yaml sets for H200
# - lm_eval task gsm8k: tokgate runs no accuracy harness; answers {} and data sets with answers gate what a change does to answers
# - bfcl multiple, parallel: as above
# - --seed 3: prompts of a plan differ in every round, and are the same in every run
# - lengths of chat prompts: this tool does not count the chat template in them, a plan does

variable "image" {
  type    = string
  default = "vllm/vllm-openai:nightly"
}

server "under_test" {
  engine = "vllm"
  model  = "example/model-fp8"
  args   = ["--tensor-parallel-size", "8", "--max-model-len", "auto", "--hf-overrides", "{\"a\": 1}"]

  container {
    image = var.image
    gpus  = 8
    # volumes = ["compiled:/root/.cache", "/var/cache/huggingface:/root/.cache/huggingface:ro"]
    env = {
      "OMP_NUM_THREADS" = "1"
    }
  }
  ready { timeout = "1h" }

  simulator {} # what --simulate uses instead
}

workload "load-1k-in-256-out" {
  api           = "completions"
  input_tokens  = 1024
  output_tokens = 256

  load {
    concurrency = [1, 64]
    requests    = { 1 = 10, 64 = 640 }
  }

  sla {
    success = "every"
    # ttft  = "p99 < 2s"
    # speed = "mean > 20 tok/s"
  }
}

# 3 repetitions of the recipe, as one measurement
workload "load-8k-in-1k-out" {
  api           = "chat"
  input_tokens  = 8192
  output_tokens = 1024

  load {
    concurrency = [128]
    requests    = 3 * 256
    warmup      = 128 # before each round
  }

  sla {
    success = "every"
    # ttft  = "p99 < 2s"
    # speed = "mean > 20 tok/s"
  }
}

