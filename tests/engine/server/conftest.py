"""One tiny model for all tests of the server, and a server over it.

Imports stand in the fixtures: a light install loads this file too, and skips the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import openai
    from tests.engine.server.serving import Running

    from servewise.engine.checkpoint import Checkpoint
    from servewise.engine.decoder.decoder import Decoder
    from servewise.engine.server.asked import Served


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Random weights, a byte-level tokenizer and a chat template."""
    import torch
    from tests.engine.tiny import tiny_checkpoint

    from servewise.engine.checkpoint import load_checkpoint

    torch.set_num_threads(1)
    return load_checkpoint(tiny_checkpoint(tmp_path_factory.mktemp("served") / "tiny"))


@pytest.fixture(scope="session")
def decoder(checkpoint: Checkpoint) -> Decoder:
    """Its float64 decoder, in which a reply cannot depend on what runs beside it."""
    import torch

    from servewise.engine.decoder.load import load_decoder

    return load_decoder(checkpoint, dtype=torch.float64)


@pytest.fixture(scope="session")
def served(checkpoint: Checkpoint) -> Served:
    """The model as the API shows it."""
    from servewise.engine.server.asked import Served

    config = checkpoint.config
    return Served(config.name, config.max_context_tokens, config.vocabulary, checkpoint.tokenizer())


@pytest.fixture(scope="module")
def running(decoder: Decoder, served: Served) -> Iterator[Running]:
    """A server for all tests of a module."""
    from tests.engine.server.serving import engine_of, serving

    with serving(engine_of(decoder, served), served) as found:
        yield found


@pytest.fixture
def client(running: Running) -> Iterator[openai.OpenAI]:
    """The official client."""
    with running.client() as found:
        yield found
