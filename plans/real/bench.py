"""Has vLLM's own client compute its figures from the samples of a tokgate run, and compares them with
the "vllm_bench" of its results.json.

    python plans/real/bench.py RESULTS        # in an environment that has vLLM; exit 1 above 1 %
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput
from vllm.benchmarks.serve import calculate_metrics

MOST = 0.01


def streams(folder, results):
    """The completed requests of each level, as vLLM's client would have noted them. Of levels that are
    one window only: rounds have pauses between them, which that client does not know."""
    batches = {
        (level["server"], level["workload"], level["name"], r["index"])
        for level in results["run"]["levels"]
        for r in level["rounds"] + level.get("voided", [])
        if level.get("batches")
    }
    of = defaultdict(list)
    for line in (folder / "samples.jsonl").open():
        record = json.loads(line)
        if record["type"] != "sample":
            continue
        s = record["sample"]
        key = s["server"], s["workload"], s["level"]
        if (*key, s["round"]) in batches and s["phase"] == "measured" and s.get("finish") and s.get("usage"):
            of[key].append(s)
    return of


def by_vllm(samples):
    outputs = [
        RequestFuncOutput(
            success=True,
            start_time=s["sent_ns"] / 1e9,
            latency=(s["last_ns"] - s["sent_ns"]) / 1e9,
            ttft=(s["first_ns"] - s["sent_ns"]) / 1e9,
            itl=[gap / 1e6 for gap in s.get("gaps_us", [])],
            output_tokens=s["usage"]["output"],
            prompt_len=s["usage"]["input"],
        )
        for s in samples
    ]
    took = (max(s["last_ns"] for s in samples) - min(s["sent_ns"] for s in samples)) / 1e9
    m, _ = calculate_metrics([], outputs, took, None, [99.0], {})
    figures = {
        "completed": m.completed,
        "request_throughput": m.request_throughput,
        "output_throughput": m.output_throughput,
        "total_token_throughput": m.total_token_throughput,
    }
    for name in ("ttft", "tpot", "itl", "e2el"):
        figures[f"{name}_ms mean"] = getattr(m, f"mean_{name}_ms")
        figures[f"{name}_ms median"] = getattr(m, f"median_{name}_ms")
        figures[f"{name}_ms p99"] = dict(getattr(m, f"percentiles_{name}_ms"))[99.0]
    return figures


def by_tokgate(results):
    """The figures of each level in results.json, whose cases are in the order of the run's levels."""
    found = {}
    for level, case in zip(results["run"]["levels"], results["cases"], strict=True):
        flat = found.setdefault((level["server"], level["workload"], level["name"]), {})
        for name, figure in case.get("vllm_bench", {}).items():
            for part, value in figure.items() if isinstance(figure, dict) else [("", figure)]:
                flat[f"{name} {part}".strip()] = value
    return found


def main(folder):
    results = json.loads((folder / "results.json").read_text())
    theirs, ours = streams(folder, results), by_tokgate(results)
    worst, compared = 0.0, 0
    for key, samples in theirs.items():
        if not ours.get(key):
            continue
        for name, want in by_vllm(samples).items():
            got = ours[key][name]
            off = abs(got - want) / abs(want)
            worst, compared = max(worst, off), compared + 1
            if off > MOST:
                print(f"{' '.join(key)}: {name} {got:g}, by vLLM {want:g}")
        print(f"{' '.join(key)}: {len(samples)} requests")
    print(f"{compared} figures, at most {100 * worst:.2g} % apart")
    return 0 if compared and worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
