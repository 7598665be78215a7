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
    """The block has one client refused: there is one line more afterwards, without these secrets."""
    before = len(refusals(broker))
    yield
    [line] = eventually(lambda: refusals(broker)[before:], accept=bool)
    assert not [secret for secret in secrets if secret in line]
