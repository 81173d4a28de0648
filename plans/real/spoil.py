"""Makes of the model that taught.py made what an engine may make of it.

    python spoil.py DIR

DIR/int4 has weights of four bits, DIR/int4-cut too, by a kernel that forgets to round, and
DIR/wrong.jinja is a chat template without roles.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file


def four_bits(weight, to_level):
    """Levels from -7 to 7 a row, as quantisation without groups and zero points has them."""
    if weight.ndim != 2:
        return weight
    scale = np.abs(weight).max(1, keepdims=True) / 7
    return (to_level(weight / scale) * scale).astype(weight.dtype)


def main():
    out = Path(sys.argv[1])
    weights = load_file(out / "taught" / "model.safetensors")
    for name, to_level in {"int4": np.round, "int4-cut": np.trunc}.items():
        shutil.copytree(out / "taught", out / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("state.pt"))
        save_file({k: four_bits(w, to_level) for k, w in weights.items()}, out / name / "model.safetensors", {"format": "pt"})
    (out / "wrong.jinja").write_text("{% for m in messages %}{{ m['content'] }}\n{% endfor %}")


main()
