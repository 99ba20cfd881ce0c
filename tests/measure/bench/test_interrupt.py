"""Ctrl-C is raised where it is asked for, and never lost."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from servewise.measure.bench.interrupt import Interrupt


def interrupt() -> None:
    """As the terminal does."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def _listening() -> None:
    """A shell's background job inherits that interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(done: list[str], times: int) -> None:
    """Work that is interrupted so often in its middle, and asks after it."""
    with Interrupt() as noted:
        for _ in range(times):
            interrupt()
        done.append("a whole row")
        noted.check()


def test_a_first_interrupt_is_raised_where_it_is_checked() -> None:
    """Work that was begun is ended before it."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(done, times=1)

    assert done == ["a whole row"]


def test_a_second_interrupt_is_raised_at_once() -> None:
    """Who presses again does not want to wait."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(done, times=2)

    assert done == []


def test_what_stood_before_stands_again() -> None:
    """After it, and in other threads, interrupts are as they were."""
    with Interrupt() as noted:
        noted.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    threads = [threading.Thread(target=Interrupt().__enter__)]
    for each in threads:
        each.start()
        each.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
