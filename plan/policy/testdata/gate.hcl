gate { # ERROR: Weaker than the policy allows # ERROR: Weaker than the policy allows
  budget          = "1h"
  confidence      = 0.9
  on_inconclusive = "warn" # ERROR: Not allowed by the policy
}

locals {
  home = env.HOME                   # ERROR: Not allowed by the policy
  open = nonsensitive(env.HF_TOKEN) # ERROR: Not allowed by the policy
  nccl = nonsensitive(env.NCCL_DEBUG)
}

server "v" {
  engine = "vllm"
  model  = "m"
  flags = {
    max-model-len     = 4096
    trust-remote-code = true                          # ERROR: Not allowed by the policy
    max-num-seqs      = ["8", "--download-dir=/data"] # ERROR: Not allowed by the policy
  }
  args = ["--max-logprobs", "-1", "--enable_prefix_caching", "--plugin=x"] # ERROR: Not allowed by the policy
  container {
    image   = "evil/vllm-openai:v0.19.1"                                   # ERROR: Not allowed by the policy
    volumes = ["/data/hf/../../etc:/root/.cache/huggingface:ro"]           # ERROR: Not allowed by the policy
    env     = { HF_TOKEN = env.HF_TOKEN, LD_PRELOAD = "x" }                # ERROR: Not allowed by the policy
    network = "host"                                                       # ERROR: Not allowed by the policy
    options = ["--ipc", "host", "--init", "--privileged", "-v", "/:/host"] # ERROR: Not allowed by the policy # ERROR: Not allowed by the policy
    command = ["vllm", "serve"]                                            # ERROR: Not allowed by the policy
  }
}

server "p" {
  process {                                         # ERROR: Not allowed by the policy
    command = ["vllm", "serve", "--port", "{port}"] # ERROR: Not allowed by the policy # ERROR: Not allowed by the policy
  }
}

server "s" { # ERROR: Not allowed by the policy
  simulator {}
}

server "e" {
  endpoint {
    url       = "http://169.254.169.254/latest" # ERROR: Not allowed by the policy
    redirects = "any"                           # ERROR: Not allowed by the policy
  }
  telemetry {
    dcgm_url = "http://10.0.0.1/metrics" # ERROR: Not allowed by the policy
  }
}

server "g" {
  endpoint {
    urls     = ["http://127.0.0.1:8000", "http://10.0.0.2:8000"]                  # ERROR: Not allowed by the policy
    replicas = [{ url = "http://127.0.0.1:1" }, { url = "http://10.0.0.3:8000" }] # ERROR: Not allowed by the policy
  }
  telemetry {
    prometheus {
      url = "http://10.0.0.4:9090" # ERROR: Not allowed by the policy
      series "queue" { promql = "sum(queue)" }
    }
  }
}

workload "w" {
  gate {
    decide = "estimate" # ERROR: Not allowed by the policy
  }
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = [1]
    requests    = 300
  }
  sla {
    ttft = "p95 < 3s" # ERROR: Weaker than the policy allows # ERROR: Weaker than the policy allows
    itl  = "p95 < 90ms"
  }
}
