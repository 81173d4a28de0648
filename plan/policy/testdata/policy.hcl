# What the owners of the machines allow.
allow {
  servers = ["container", "endpoint"]
  images  = ["vllm/vllm-openai:v0.19.*", "lmsysorg/sglang@sha256:*"]
  flags   = ["max-*", "enable-prefix-caching"]
  options = ["*", "--ipc=host"]
  volumes = ["/data/hf/*:/root/.cache/huggingface:ro"]
  env     = ["HF_TOKEN", "NCCL_*"]

  nonsensitive = ["NCCL_*"]
  urls         = ["http://127.0.0.1:*"]
}

require {
  decide          = ["certified"]
  on_inconclusive = ["stop", "extend"]
  keep            = ["* ttft *", "gate: *"]
}
