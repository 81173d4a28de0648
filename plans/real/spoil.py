"""Makes of the model that taught.py made what an engine may make of it.

    python spoil.py DIR

DIR/int4 has weights of four bits, DIR/rope another base of the rotary embedding, DIR/half
attends to the last 256 tokens alone, and DIR/wrong.jinja is a chat template without roles.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

KEPT = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json", "model.safetensors"]


def four_bits(weight):
    """Sixteen levels a row, as round-to-nearest quantisation without groups has them."""
    if weight.ndim != 2:
        return weight
    scale = np.abs(weight).max(1, keepdims=True) / 7
    return (np.clip((weight / scale).round(), -8, 7) * scale).astype(weight.dtype)


def main():
    out = Path(sys.argv[1])
    taught = out / "taught"
    config = json.loads((taught / "config.json").read_text())
    rope = dict(config.get("rope_parameters") or {"rope_type": "default"}, rope_theta=20000.0)
    window = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 256}
    for name, changed in {"int4": {}, "rope": {"rope_parameters": rope, "rope_theta": 20000.0}, "half": window}.items():
        folder = out / name
        folder.mkdir(exist_ok=True)
        for kept in KEPT:
            shutil.copy(taught / kept, folder)
        (folder / "config.json").write_text(json.dumps({**config, **changed}, indent=2))
    weights = load_file(taught / "model.safetensors")
    save_file({k: four_bits(w) for k, w in weights.items()}, out / "int4" / "model.safetensors", {"format": "pt"})
    (out / "wrong.jinja").write_text("{% for m in messages %}{{ m['content'] }}\n{% endfor %}")


main()
