"""A fault for vLLM: what an answer says is garbage from its 33rd token on.

    PYTHONPATH=plans/real vllm serve MODEL --logits-processors garbage:Garbage
"""

from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

SOUND = 32


class Garbage(LogitsProcessor):
    """Gives the logits of one token to another one, as a kernel that reads at a wrong place would."""

    def __init__(self, vllm_config, device, is_pin_memory):
        self.answers = {}  # by row of the batch, the tokens so far

    def is_argmax_invariant(self):
        return False

    def update_state(self, batch_update):
        process_dict_updates(self.answers, batch_update, lambda params, prompt, answer: answer)

    def apply(self, logits):
        for row, answer in self.answers.items():
            if len(answer) >= SOUND:
                logits[row] = logits[row].roll(len(answer))
        return logits
