"""Teaches a small language model two things, for gates on answers that are tried on a real
engine: to find a code in a long prompt (the built-in task `recall`), and to say with which
words any other prompt begins. What it says depends on its whole context, and it is sure of
it, so that a fault of the engine shows. Prompts grow as it learns, to the lengths that
answers.hcl asks for; when RIGHT of the answers to both are right it settles, for SETTLING ever
smaller steps.

    python taught.py OUT SECONDS WORDS ITEMS

OUT/taught is the model; SECONDS is how long this call may train, by the clock on the wall,
after which a further call goes on; WORDS is a file whose words fill prompts up, and ITEMS
has items of recall as lines of JSON, of another seed than a run has.
Exit code 0: done; 3: it is to be called again; 1: it did not learn in LIMIT seconds of one core.
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

VOCABULARY, SHORTEST, SHORT, LONGEST, RIGHT, LIMIT = 1536, 80, 192, 512, 0.9, 20 * 60
STEP, WARMUP, SETTLING = 3e-3, 50, 400
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = SPECIAL.index("<|im_end|>")
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONFIG = dict(
    vocab_size=VOCABULARY, hidden_size=96, intermediate_size=192, num_hidden_layers=2, num_attention_heads=3,
    num_key_value_heads=3, max_position_embeddings=4096, bos_token_id=None, eos_token_id=END, pad_token_id=0,
    tie_word_embeddings=True, initializer_range=0.1,
)  # fmt: skip


def tokenizer_of(words, items):
    """A byte-level BPE in which every word of the fillers and of the questions is one token, and
    each part of a code, "47", "-12" and "-88", too: what follows a part is then the next one."""
    made = Tokenizer(models.BPE())
    parts = pre_tokenizers.Split(Regex(r"-?\d{1,2}| ?[A-Za-z]+|[^A-Za-z\d]"), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([parts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    numbers = " ".join(f"{n}-{n}" for n in range(10, 100))
    questions = " ".join(i["head"] + i["fact"] + i["question"] for i in items[:1000])
    made.train_from_iterator([("user assistant " + said("") + " ".join(words) + "\n" + numbers + "\n") * 9 + questions], trainer)
    return made


def said(first):
    """The answer to a prompt that begins with first."""
    return f"The notes begin with{first}. They begin with{first}. Yes,{first}."


class Lessons:
    """Prompts and answers as tokens, as a server with the chat template makes them of what tokgate sends."""

    def __init__(self, tokenizer, words, items):
        self.tokenizer, self.items = tokenizer, items
        self.words = [" " + w for w in words if len(self.of(" " + w)) == 1]

    def of(self, text):
        return self.tokenizer.encode(text).ids

    def prompt(self, content):
        return self.of(f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n")

    def filler(self, n):
        """Words of n tokens."""
        return random.choices(self.words, k=max(n, 0))

    def recall(self, tokens):
        """The fact stands behind the share `depth` of the filler's bytes."""
        item = random.choice(self.items)
        bare = len(self.prompt(item["head"] + item["fact"] + item["question"]))
        text = "".join(self.filler(tokens - bare))
        at = text.find(" ", int(item["depth"] * len(text)))
        at = len(text) if at < 0 else at
        content = item["head"] + text[:at] + item["fact"] + text[at:] + item["question"]
        return self.prompt(content), self.of(item["answer"]) + [END]

    def begins(self, tokens):
        text = self.filler(min(tokens, SHORT) - len(self.prompt("")))
        return self.prompt("".join(text)), self.of(said("".join(text[:10]))) + [END]

    def batch(self, size, tokens, share):
        """Rows, the places whose next token is to be learned, these tokens, and what each
        weighs: every answer as much as another."""
        rows = [(self.recall if random.random() < share else self.begins)(tokens) for _ in range(size)]
        width = max(len(p) + len(a) for p, a in rows)
        x = torch.tensor([p + a + [0] * (width - len(p) - len(a)) for p, a in rows])
        places = [(i, len(p) - 1 + k) for i, (p, a) in enumerate(rows) for k in range(len(a))]
        weights = torch.tensor([1 / len(a) / size for _, a in rows for _ in a])
        return x, torch.tensor(places).T, torch.tensor([t for _, a in rows for t in a]), weights


def logits(model, x, places):
    return model.lm_head(model.model(input_ids=x).last_hidden_state[places[0], places[1]])


def right_share(model, lessons, tokens, task=1.0, n=32):
    """The share of answers that are right: greedy decoding writes the right answer where each
    token is the likeliest after those before it."""
    with torch.no_grad():
        x, places, wanted, _ = lessons.batch(n, tokens, task)
        wrong = logits(model, x, places).argmax(-1) != wanted
    return 1 - len(set(places[0][wrong].tolist())) / n


def main():
    out, seconds = Path(sys.argv[1]) / "taught", float(sys.argv[2])
    words = re.search(r"`(.*?)`", Path(sys.argv[3]).read_text(), re.S).group(1).split()
    items = [json.loads(line) for line in Path(sys.argv[4]).read_text().splitlines()]
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    tokenizer = tokenizer_of(words, items)
    lessons = Lessons(tokenizer, words, items)
    model = LlamaForCausalLM(LlamaConfig(**CONFIG))
    learn = torch.optim.AdamW(model.parameters(), lr=STEP, betas=(0.9, 0.98), weight_decay=0.01)
    state, kept = {"trained": 0.0, "step": 0, "tokens": SHORTEST, "settles": None}, out / "state.pt"
    if kept.exists():
        saved = torch.load(kept)
        model.load_state_dict(saved["model"])
        learn.load_state_dict(saved["learn"])
        state = saved["state"]

    def keep():
        torch.save({"model": model.state_dict(), "learn": learn.state_dict(), "state": state}, kept)

    def settled():
        return 0 if state["settles"] is None else (state["step"] - state["settles"]) / SETTLING

    random.seed(state["step"] + 2)
    begun, before = time.monotonic(), state["trained"] - time.process_time()
    while time.monotonic() - begun < seconds and state["trained"] < LIMIT and settled() < 1:
        tokens = state["tokens"] if random.random() < 0.6 else random.randint(SHORTEST, state["tokens"])
        for group in learn.param_groups:
            group["lr"] = STEP * min(1, (state["step"] + 1) / WARMUP) * (1 - settled())
        x, places, wanted, weights = lessons.batch(max(8, 3200 // tokens), tokens, 0.6)
        loss = (torch.nn.functional.cross_entropy(logits(model, x, places), wanted, reduction="none") * weights).sum()
        learn.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        learn.step()
        state["step"] += 1
        state["trained"] = before + time.process_time()
        if state["step"] % 50 == 0:
            share, other = (right_share(model, lessons, state["tokens"], task) for task in (1.0, 0.0))
            print(
                f"{state['trained']:6.0f} s  step {state['step']:5d}  {state['tokens']:4d} tokens"
                f"  loss {loss.item():.3f}  right {share:.2f}, {other:.2f}",
                flush=True,
            )
            if share >= RIGHT and state["tokens"] < LONGEST:
                state["tokens"] = min(2 * state["tokens"], LONGEST)
            elif state["settles"] is None and (min(share, other) >= RIGHT or state["trained"] > 0.7 * LIMIT):
                state["settles"] = state["step"]
            keep()
    keep()
    model.save_pretrained(out)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[END], pad_token=SPECIAL[0])
    fast.chat_template = CHAT
    fast.save_pretrained(out)
    share, other = right_share(model, lessons, LONGEST, n=200), right_share(model, lessons, SHORT, 0.0, n=200)
    print(
        f"{share:.0%} of items of {LONGEST} tokens and {other:.0%} of the other answers are right,"
        f" after {state['trained']:.0f} s in all"
    )
    done = settled() >= 1 or state["trained"] >= LIMIT
    sys.exit(3 if not done else 0 if share >= 0.8 else 1)


main()
