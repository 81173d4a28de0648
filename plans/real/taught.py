"""Teaches a small language model two things, for gates on answers that are tried on a real
engine: to find a code in a long prompt (the built-in task `recall`), and to say with which
words any other prompt begins. What it says depends on its whole context, and it is sure of
it, so that a fault of the engine shows. It goes on from its last checkpoint, and ends when
RIGHT of the items of LONGEST tokens are right, or after LIMIT seconds of one core in all.

    python taught.py OUT SECONDS WORDS

OUT/taught is the model; SECONDS is how long this call may train, by the clock on the wall; WORDS is a file whose
words fill prompts up. Exit code 0: done; 3: it is to be called again; 1: it did not learn.
"""

import json
import random
import re
import sys
import time
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY, LONGEST, RIGHT, LIMIT = 1536, 512, 0.8, 20 * 60
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = SPECIAL.index("<|im_end|>")
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONFIG = dict(
    vocab_size=VOCABULARY, hidden_size=96, intermediate_size=192, num_hidden_layers=2, num_attention_heads=3,
    num_key_value_heads=3, max_position_embeddings=4096, bos_token_id=None, eos_token_id=END, pad_token_id=0,
    tie_word_embeddings=True,
)  # fmt: skip


def tokenizer_of(words):
    """A byte-level BPE in which every word of the fillers is one token, and each part of a
    code, "47", "-12" and "-88", too: what follows a part is then the next one."""
    made = Tokenizer(models.BPE())
    parts = pre_tokenizers.Split(Regex(r"-?\d{1,2}|\n"), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([parts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    numbers = " ".join(f"{n}-{n}" for n in range(10, 100))
    made.train_from_iterator([("Read the notes. " + " ".join(words) + "\n" + numbers + "\n") * 9], trainer)
    return made


class Lessons:
    """Prompts and answers as tokens; recall is written as answers/task.go does it."""

    def __init__(self, tokenizer, words):
        self.of = lambda text: tokenizer.encode(text).ids
        self.names, self.words = words, [self.of(" " + w) for w in words]
        self.head, self.tail = self.of("<|im_start|>user\n"), self.of("<|im_end|>\n<|im_start|>assistant\n")
        self.notes = self.of("Read the notes. They may hold nothing of use.\nNotes:")

    def filler(self, n):
        """Words of n tokens in all, or a few more."""
        out = []
        while len(out) < n:
            out += random.choice(self.words)
        return out

    def recall(self, tokens):
        name, code = random.choice(self.names), "-".join(str(random.randint(10, 99)) for _ in range(3))
        fact = self.of(f"\nThe code of the {name} is {code}.\n")
        asked = self.of(f"\n\nQuestion: What is the code of the {name}? Answer with the code alone.")
        answer = self.of(code) + [END]
        room = tokens - sum(map(len, (self.head, self.notes, fact, asked, self.tail, answer)))
        before = int(max(room, 0) * random.randint(1, 9) / 10)
        prompt = self.head + self.notes + self.filler(before) + fact + self.filler(room - before) + asked + self.tail
        return prompt, answer

    def begins(self, tokens):
        first = self.filler(8)
        answer = self.of("The notes begin with") + first + self.of(".") + [END]
        prompt = self.head + first + self.filler(tokens - len(first) - len(answer) - 12) + self.tail
        return prompt, answer

    def batch(self, size, tokens, share):
        """Rows, the places whose next token is to be learned, and these tokens."""
        rows = [(self.recall if random.random() < share else self.begins)(tokens) for _ in range(size)]
        width = max(len(p) + len(a) for p, a in rows)
        x = torch.tensor([p + a + [0] * (width - len(p) - len(a)) for p, a in rows])
        places = [(i, len(p) - 1 + k) for i, (p, a) in enumerate(rows) for k in range(len(a))]
        return x, torch.tensor(places).T, torch.tensor([t for _, a in rows for t in a])


def logits(model, x, places):
    return model.lm_head(model.model(input_ids=x).last_hidden_state[places[0], places[1]])


def right_share(model, lessons, tokens, n=48):
    """The share of items that are right: greedy decoding writes the right answer where each
    token is the likeliest after those before it."""
    with torch.no_grad():
        x, places, wanted = lessons.batch(n, tokens, 1.0)
        wrong = logits(model, x, places).argmax(-1) != wanted
    return 1 - len(set(places[0][wrong].tolist())) / n


def main():
    out, seconds = Path(sys.argv[1]) / "taught", float(sys.argv[2])
    words = re.search(r"`(.*?)`", Path(sys.argv[3]).read_text(), re.S).group(1).split()
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    random.seed(1)
    tokenizer = tokenizer_of(words)
    lessons = Lessons(tokenizer, words)
    model = LlamaForCausalLM(LlamaConfig(**CONFIG))
    learn = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
    state, kept = {"trained": 0.0, "step": 0, "tokens": 80}, out / "state.pt"
    if kept.exists():
        saved = torch.load(kept)
        model.load_state_dict(saved["model"])
        learn.load_state_dict(saved["learn"])
        state = saved["state"]

    def keep():
        torch.save({"model": model.state_dict(), "learn": learn.state_dict(), "state": state}, kept)

    random.seed(state["step"] + 2)
    begun, before = time.monotonic(), state["trained"] - time.process_time()
    while time.monotonic() - begun < seconds and state["trained"] < LIMIT:
        tokens = state["tokens"] if random.random() < 0.8 else 80
        for group in learn.param_groups:
            group["lr"] = 3e-3 * min(1, (state["step"] + 1) / 50)
        x, places, wanted = lessons.batch(max(8, 2560 // tokens), tokens, 0.7)
        loss = torch.nn.functional.cross_entropy(logits(model, x, places), wanted)
        learn.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        learn.step()
        state["step"] += 1
        state["trained"] = before + time.process_time()
        if state["step"] % 50 == 0:
            share = right_share(model, lessons, state["tokens"])
            print(f"{state['trained']:6.0f} s  step {state['step']:5d}  {state['tokens']:4d} tokens  loss {loss.item():.3f}  right {share:.2f}", flush=True)
            if share >= 0.9 and state["tokens"] < LONGEST:
                state["tokens"] = min(2 * state["tokens"], LONGEST)
            elif share >= 0.97:
                break
        if state["step"] % 10 == 0:
            keep()
    keep()
    model.save_pretrained(out)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[END], pad_token=SPECIAL[0])
    fast.chat_template = CHAT
    fast.save_pretrained(out)
    share = right_share(model, lessons, LONGEST, 200)
    (out / "taught.json").write_text(json.dumps({"seconds": round(state["trained"]), "steps": state["step"], "right": share}) + "\n")
    print(f"{share:.0%} of items of {LONGEST} tokens are right, after {state['trained']:.0f} s in all")
    sys.exit(0 if share >= RIGHT else 3 if state["trained"] < LIMIT else 1)


main()
