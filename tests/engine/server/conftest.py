"""One tiny model for all tests of the server, and a server over it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
pytest.importorskip("openai")

import openai
import torch
from tests.engine.server.serving import MODEL, Running, serving
from tests.engine.tiny import tiny_checkpoint

from servewise.batching.policies import Continuous
from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.load import load_decoder
from servewise.engine.running.engine import Engine
from servewise.engine.server.asked import Served

BLOCKS, BLOCK = 96, 8


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Random weights, a byte-level tokenizer and a chat template."""
    torch.set_num_threads(1)
    return load_checkpoint(tiny_checkpoint(tmp_path_factory.mktemp("served") / MODEL))


@pytest.fixture(scope="session")
def decoder(checkpoint: Checkpoint) -> Decoder:
    """Its float64 decoder, in which a reply cannot depend on what runs beside it."""
    return load_decoder(checkpoint, dtype=torch.float64)


@pytest.fixture(scope="session")
def served(checkpoint: Checkpoint) -> Served:
    """The model as the API shows it."""
    config = checkpoint.config
    return Served(MODEL, config.max_context_tokens, config.vocabulary, checkpoint.tokenizer())


def engine_of(decoder: Decoder, served: Served, *, blocks: int = BLOCKS, slots: int = 8) -> Engine:
    """An engine with continuous batching and a prefix cache."""
    policy = Continuous(max_sequences=slots, max_batched_tokens=64, prefix_cache=True)
    return Engine(decoder, policy, blocks=blocks, block_tokens=BLOCK, tokenizer=served.tokenizer)


@pytest.fixture(scope="module")
def running(decoder: Decoder, served: Served) -> Iterator[Running]:
    """A server for all tests of a module."""
    with serving(engine_of(decoder, served), served) as found:
        yield found


@pytest.fixture
def client(running: Running) -> Iterator[openai.OpenAI]:
    """The official client."""
    with running.client() as found:
        yield found
