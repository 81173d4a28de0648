# Qwen3.6-35B-A3B-FP8 with and without multi-token prediction (MTP) on a DGX Spark
# GB10, as a published A/B article measured it with vLLM: four tests, two seeds,
# three warm-up requests, and the model before it, Qwen3.5-35B-A3B-FP8, on the same
# stack as control. The copy of the article that the figures come from does not
# name its publisher. Its tool was `vllm bench serve`, its stack driver 580.142,
# CUDA 13.0 and an image pulled on 2026-04-18, to which it had added pandas.
#
#   tokgate run --simulate plans/reference/qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.hcl
#   tokgate run --simulate plans/reference/qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.hcl --var lengths=jittered
#
# Like the article, this plan measures one server after the other, each once. Two
# seeds are too few for an interval. qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10-ab.hcl runs
# the same tests in turns, with verdicts on what changed.

include = ["lib/conditions.hcl", "lib/dgx-spark.hcl"]

locals {
  # The seeds that the article states. Test A has one seed.
  seeds = { A = [42], B = [42, 123], C = [42, 123], D = [42, 123] }
}
