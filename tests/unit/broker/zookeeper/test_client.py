from __future__ import annotations

from odradek.broker.zookeeper.client import Client
from odradek.broker.zookeeper.jute import Identity


def test_a_client_has_its_address_as_identity() -> None:
    assert list(Client("10.0.0.1").identities) == [Identity("ip", "10.0.0.1")]
