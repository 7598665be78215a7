"""An exchange of the broker's inside the library that kazoo uses; `tests/kerberos` uses it with a ZooKeeper."""

from __future__ import annotations

import logging

import pytest
from puresasl.client import SASLClient

from odradek.controller.tree.zookeeper_sasl import exchange_options


class Exchange:
    """Answers each challenge with its length, and is complete after two."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.challenges: list[bytes] = []

    @property
    def is_complete(self) -> bool:
        return len(self.challenges) == 2

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        self.challenges.append(challenge)
        if challenge == b"wrong":
            raise ValueError("bad checksum")
        return str(len(challenge)).encode()


def client(made: list[Exchange]) -> SASLClient:
    """As kazoo makes it for each connection."""

    def make(host: str) -> Exchange:
        made.append(Exchange(host))
        return made[-1]

    return SASLClient(host="zk1.example.com", service="zookeeper", **exchange_options(make))


def test_challenges_go_to_the_exchange_until_it_is_complete() -> None:
    made: list[Exchange] = []
    one = client(made)
    assert not one.complete
    assert one.process(challenge=None) == b"0"
    assert not one.complete
    assert one.process(challenge=b"challenge") == b"9"
    assert one.complete
    one.dispose()
    assert (made[0].host, made[0].challenges) == ("zk1.example.com", [b"", b"challenge"])
    client(made)
    assert len(made) == 2, "one exchange for each connection"


def test_why_it_failed_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with pytest.raises(ValueError, match="bad checksum"):
        client([]).process(challenge=b"wrong")
    assert caplog.messages == ["SASL authentication to ZooKeeper at zk1.example.com failed: bad checksum"]
