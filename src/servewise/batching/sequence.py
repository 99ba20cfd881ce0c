"""A sequence as the scheduler knows it: lengths and progress, no text, no tensor, no time."""

from __future__ import annotations


class Sequence:
    """One request in the hands of a policy. A driver may subclass it to keep its own facts beside these.

    ``prompt_tokens`` and ``output_tokens`` are its lengths (the output's upper limit where the end is not known
    ahead; the driver then calls ``finish``). ``target_tokens`` are the tokens to compute before the next token
    comes: the prompt, or after a preemption the prompt and all that was generated. ``computed_tokens`` of them
    are in the KV cache; ``cached_tokens`` came from the prefix cache when it was last admitted. While it decodes,
    ``generated`` and the KV length follow from ``end_step`` and the group's step counter.

    ``stored_tokens`` of its KV lie outside the pool: on the host after a swap, or on the server that computed its
    prompt (then it comes with ``generated`` 1 and ``stored_tokens`` equal to ``prompt_tokens``). They are all of its
    KV: ``prompt_tokens + generated - 1``. Once admitted it decodes from that very step on. It has tokens to go.
    ``priority``: the lower goes first where a policy heeds it, as in vLLM. ``answer_hashed``: ``block_hashes`` go on
    past the prompt, through whole blocks of the answer.
    """

    # Defaults on the class: a new sequence sets only what differs, and a simulation makes a million of them.
    computed_tokens = 0
    cached_tokens = 0
    first_cached_tokens: int | None = None  # cached tokens at its first admission
    generated = 0
    join = 0  # which joining of the decode group made it a member; 0: it is none
    end_step = 0  # the group's step counter at which it ends, while it is a member
    blocks = 0  # private blocks of the pool that it holds
    shared = 0  # leading hash blocks that it holds together with others
    preemptions = 0
    stored_tokens = 0
    priority = 0
    answer_hashed = False

    def __init__(self, serial: int, prompt_tokens: int, output_tokens: int, block_hashes: tuple[int, ...] = ()) -> None:
        self.serial = serial
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.block_hashes = block_hashes
        self.target_tokens = prompt_tokens

    @property
    def total_tokens(self) -> int:
        """Prompt and output."""
        return self.prompt_tokens + self.output_tokens
