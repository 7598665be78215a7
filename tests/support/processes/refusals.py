"""How often a broker of either kind logs that it has refused a client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.support.broker import Broker
from tests.support.waiting import eventually

_LINE: Final = "Failed authentication with /127.0.0.1"


def refusals(broker: Broker) -> list[str]:
    """The lines of the log, oldest first."""
    return [line for line in broker.log_text().splitlines() if _LINE in line]


@contextmanager
def logged_once(broker: Broker, *secrets: str) -> Iterator[None]:
    """The block has one connection refused: there is one line more afterwards, without these secrets."""
    with logged(broker, *secrets) as lines:
        yield
    assert len(lines) == 1, lines


@contextmanager
def logged(broker: Broker, *secrets: str) -> Iterator[list[str]]:
    """The block has a client refused, once for each time that it connects: there are as many lines more afterwards,
    which are in the list then, without these secrets.
    """
    before, lines = len(refusals(broker)), list[str]()
    yield lines
    lines += eventually(lambda: refusals(broker)[before:], accept=bool)
    assert not [secret for secret in secrets for line in lines if secret in line]
