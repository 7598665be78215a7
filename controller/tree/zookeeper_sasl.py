"""SASL to ZooKeeper by an exchange of the broker's, for mechanisms that kazoo's SASL library does not have by itself.

kazoo performs the mechanisms of the package puresasl, whose GSSAPI needs another Kerberos library than the broker's.
Here a mechanism is added to its registry that passes each challenge to a `SaslExchange`.

ZooKeeper: ZooKeeperSaslClient.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from puresasl import mechanisms

if TYPE_CHECKING:
    from collections.abc import Callable

    from puresasl.client import SASLClient

    from odradek.controller.tree.zookeeper_settings import SaslExchange

MECHANISM: Final = "ODRADEK-EXCHANGE"
"""Its name in the registry only: ZooKeeper's server uses the mechanism of its own JAAS section, and is told none."""

logger = logging.getLogger("odradek.controller")


class ExchangeMechanism(mechanisms.Mechanism):  # type: ignore[misc]
    """One authentication on one connection, in kazoo's thread. `sasl.host`: the server, as in `zookeeper.connect`."""

    name = MECHANISM

    def __init__(self, sasl: SASLClient, make_exchange: Callable[[str], SaslExchange]) -> None:
        super().__init__(sasl)
        self._exchange = make_exchange(sasl.host)

    @property
    def complete(self) -> bool:
        return self._exchange.is_complete

    def process(self, challenge: bytes | None = None) -> bytes | None:
        """kazoo reports each exception as "authentication failed", without its message."""
        try:
            return self._exchange.evaluate_challenge(challenge or b"")
        except Exception as error:
            logger.error("SASL authentication to ZooKeeper at %s failed: %s", self.sasl.host, error)
            raise

    def dispose(self) -> None:
        """There is no secret to clear."""


mechanisms.mechanisms[MECHANISM] = ExchangeMechanism


def exchange_options(make_exchange: Callable[[str], SaslExchange]) -> dict[str, object]:
    """The `sasl_options` of a KazooClient."""
    return {"mechanism": MECHANISM, "make_exchange": make_exchange}
