"""Which blocks go first, worked out by hand after the rules of vLLM and of SGLang."""

from __future__ import annotations

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence


def served(
    pool: BlockPool, serial: int, prompt: int, output: int, hashes: tuple[int, ...], *, answer: bool = False
) -> Sequence:
    """A sequence that ran to its end and was released; returns it with what it found when it came."""
    sequence = Sequence(serial, prompt, output, hashes)
    sequence.answer_hashed = answer
    assert pool.admit(sequence, prompt)
    sequence.computed_tokens = prompt
    pool.publish(sequence)
    sequence.computed_tokens = prompt + output - 1  # the last token is never fed back
    grown = pool.private_blocks(sequence, sequence.computed_tokens)
    pool.take(grown - sequence.blocks)
    sequence.blocks = grown
    pool.release(sequence)
    return sequence


def found(pool: BlockPool, hashes: tuple[int, ...]) -> int:
    """Leading blocks of ``hashes`` that a prompt which goes on after them would find."""
    return pool.cached_prefix(Sequence(99, 16 * len(hashes) + 1, 1, hashes))


def test_vllm_frees_a_request_from_its_tail() -> None:
    """vLLM: blocks are freed in reverse order to the queue's end and taken from its front.

    vllm/v1/core/block_pool.py (``free_blocks``: "the first block will be evicted first", @c59cb794): A's blocks 1 2 3
    queue as 3 2 1, then B's 4 5 as 5 4. Three fresh blocks of eight are left; they go first, then 3, 2, 1, 5, 4.
    """
    pool = BlockPool(8, 16, 16)
    served(pool, 0, 48, 1, (1, 2, 3))
    served(pool, 1, 32, 1, (4, 5))
    pool.take(5)
    assert (found(pool, (1, 2, 3)), found(pool, (4, 5))) == (1, 2)
    pool.take(1)
    assert (found(pool, (1, 2, 3)), found(pool, (4, 5))) == (0, 2)
    pool.take(1)
    assert found(pool, (4, 5)) == 1


def test_vllm_moves_a_hit_to_the_end_of_the_queue() -> None:
    """A hit takes a block out of the queue (``touch``), and its release puts it back last: A 1 2, B 3 4, A again.

    The queue is then 4 3 2 1: B's blocks go first though they came later.
    """
    pool = BlockPool(4, 16, 16)
    served(pool, 0, 32, 1, (1, 2))
    served(pool, 1, 32, 1, (3, 4))
    again = served(pool, 2, 33, 1, (1, 2))  # its third block evicts 4
    assert again.cached_tokens == 32
    assert (found(pool, (1, 2)), found(pool, (3, 4))) == (2, 1)


def test_sglang_evicts_leaves_first() -> None:
    """SGLang: of the radix tree's leaves the one used longest ago goes; a parent only once it has no child.

    python/sglang/srt/mem_cache/radix_cache.py (``evict``). P (1 2) with the branches A (3) and B (4), used A, B, then
    a stranger C (5): leaves 3, 4, 5 in that order, and P becomes a leaf after 3 and 4, but was used with B: before C.
    """
    pool = BlockPool(5, 16, 16)
    served(pool, 0, 48, 1, (1, 2, 3))
    served(pool, 1, 48, 1, (1, 2, 4))
    served(pool, 2, 16, 1, (5,))
    gone = []
    for _ in range(5):
        pool.take(1)
        gone.append([key for key in (1, 2, 3, 4, 5) if key not in pool._kept])
    assert gone == [[3], [3, 4], [2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4, 5]]


def test_a_turn_finds_the_answer_before_it() -> None:
    """A prompt of 20 tokens with an answer of 30 leaves 49 tokens in the cache: three whole blocks of 16.

    vLLM caches blocks as they fill, whoever wrote them (kv_cache_manager.py, ``allocate_slots``: up to the computed
    tokens), SGLang inserts prompt and output when a request ends (``cache_finished_req``). So the next turn, the 50
    tokens and 10 more, finds 48.
    """
    pool = BlockPool(20, 16, 16)
    served(pool, 0, 20, 30, (1, 2, 3), answer=True)
    assert served(pool, 1, 60, 1, (1, 2, 3), answer=True).cached_tokens == 48


def test_the_last_token_of_an_answer_is_not_in_the_cache() -> None:
    """20 and 28 tokens are three blocks, of which 47 tokens are computed: the next turn finds two."""
    pool = BlockPool(20, 16, 16)
    served(pool, 0, 20, 28, (1, 2, 3), answer=True)
    assert served(pool, 1, 60, 1, (1, 2, 3), answer=True).cached_tokens == 32


def test_a_block_named_in_part_is_not_kept() -> None:
    """Mooncake gives the last, partly filled block of a prompt an id of its own: with the answer in it, it is another.

    Of 20 tokens with ids (1, 2) only block 1 is the prompt's own, however long the answer.
    """
    pool = BlockPool(20, 16, 16)
    served(pool, 0, 20, 30, (1, 2))
    assert found(pool, (1, 2)) == 1


def test_blocks_without_a_name_are_free_at_once() -> None:
    """What nobody can find again is taken before anything cached: of three blocks of a prompt of 40 the third."""
    pool = BlockPool(4, 16, 16)
    served(pool, 0, 40, 1, (1, 2))
    assert (pool.free, pool.kept_blocks) == (2, 2)
    pool.take(2)
    assert found(pool, (1, 2)) == 2


def test_two_that_compute_one_prefix_keep_one_copy() -> None:
    """Side by side both compute block 1; the second to publish joins the first's copy and frees its own.

    vLLM would keep both until they are released.
    """
    pool = BlockPool(10, 16, 16)
    both = [Sequence(serial, 17, 1, (1,)) for serial in range(2)]
    for each in both:
        pool.admit(each, 17)
    assert pool.free == 6
    for each in both:
        each.computed_tokens = 17
        pool.publish(each)
    assert pool.free == 7
    for each in both:
        pool.release(each)
    assert (pool.free, pool.kept_blocks) == (9, 1)
