"""Makes a language model of 0.6 million random weights, for servers that are to be
tried and not to be understood: OUT/tiny for vLLM and transformers, OUT/tiny.gguf for
llama.cpp, and OUT/embed, the same weights as a model of embeddings for vLLM. The tokenizer is
trained on the texts given. The same texts make the same files. What is there is kept.

    python model.py OUT TEXT...
"""

import sys
from pathlib import Path

import gguf
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, LlamaModel, PreTrainedTokenizerFast

VOCABULARY = 4096
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = "<|im_end|>"
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

CONFIG = LlamaConfig(
    vocab_size=VOCABULARY,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=131072,
    bos_token_id=None,
    eos_token_id=SPECIAL.index(END),
    pad_token_id=0,
    tie_word_embeddings=False,
)


def train(texts):
    """A byte-level BPE: every text has tokens, and no token is unknown."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet)
    tokenizer.train([str(t) for t in texts], trainer)
    return tokenizer


def save_gguf(path, model, tokenizer):
    """The same model in llama.cpp's format. Its rotary embedding pairs other dimensions,
    so the two do not write the same text; of random weights neither is the right one."""
    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(CONFIG.max_position_embeddings)
    out.add_embedding_length(CONFIG.hidden_size)
    out.add_block_count(CONFIG.num_hidden_layers)
    out.add_feed_forward_length(CONFIG.intermediate_size)
    out.add_head_count(CONFIG.num_attention_heads)
    out.add_head_count_kv(CONFIG.num_key_value_heads)
    out.add_layer_norm_rms_eps(CONFIG.rms_norm_eps)
    out.add_rope_dimension_count(CONFIG.hidden_size // CONFIG.num_attention_heads)
    out.add_vocab_size(CONFIG.vocab_size)

    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.get)
    control = {t: gguf.TokenType.CONTROL for t in SPECIAL}
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([control.get(t, gguf.TokenType.NORMAL) for t in tokens])
    out.add_token_merges([" ".join(pair) for pair in merges(tokenizer)])
    out.add_eos_token_id(vocabulary[END])
    out.add_pad_token_id(0)
    out.add_add_bos_token(False)
    out.add_chat_template(CHAT)

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, CONFIG.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        kind = torch.float32 if tensor.dim() == 1 else torch.float16
        out.add_tensor(names.get_name(name, (".weight",)), tensor.to(kind).numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def merges(tokenizer):
    import json

    return json.loads(tokenizer.to_str())["model"]["merges"]


def write(out, texts):
    tokenizer = train(texts)
    torch.manual_seed(1)
    model = LlamaForCausalLM(CONFIG)
    save_gguf(out / "tiny.gguf", model, tokenizer)
    model.to(torch.bfloat16).save_pretrained(out / "tiny")
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=SPECIAL[0])
    fast.chat_template = CHAT
    fast.save_pretrained(out / "tiny")


def main():
    out, texts = Path(sys.argv[1]), sorted(sys.argv[2:])
    if not (out / "tiny.gguf").exists():
        write(out, texts)
    LlamaModel.from_pretrained(out / "tiny").save_pretrained(out / "embed")
    AutoTokenizer.from_pretrained(out / "tiny").save_pretrained(out / "embed")


main()
