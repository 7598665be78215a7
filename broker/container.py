"""Starts a broker as the images of Apache Kafka and of Confluent do: `python -m odradek.broker.container`.

Test kits (testcontainers and others) start one of these images with settings in environment variables, and wait for a
line of its log. Their settings describe a single node with a ZooKeeper beside it, or with a KRaft controller in it. A
single Odradek node keeps its metadata itself, so both parts are left out; all other settings stay as they are.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_ZOOKEEPERS: Final = ("localhost:2181", "127.0.0.1:2181")
"""The ZooKeeper that the script of a test kit starts in the container of the broker."""

READY_LINES: Final = ("Kafka Server started", "Transitioning from RECOVERY to RUNNING")
"""What a broker in KRaft mode logs when clients can connect. In ZooKeeper mode it logs "[KafkaServer id=1] started", as
`odradek serve` does."""

DEFAULTS: Final = {
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
}
"""As apache/kafka without settings. A container is reached from outside only if the broker listens on all addresses."""

_ZOOKEEPER: Final = "KAFKA_ZOOKEEPER_CONNECT"
_VOTERS: Final = "KAFKA_CONTROLLER_QUORUM_VOTERS"
_CONTROLLER_LISTENERS: Final = "KAFKA_CONTROLLER_LISTENER_NAMES"
_OF_KRAFT: Final = (
    "KAFKA_PROCESS_ROLES",
    "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS",
    _VOTERS,
    _CONTROLLER_LISTENERS,
)
_WITH_LISTENERS: Final = (
    "KAFKA_LISTENERS",
    "KAFKA_ADVERTISED_LISTENERS",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
)


class NotOneNode(Exception):
    """The settings describe a node of a cluster that Odradek cannot be a part of."""


def single_node(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the settings of a ZooKeeper or KRaft controller of its own. Raises: NotOneNode."""
    voters = [voter for voter in environment.get(_VOTERS, "").split(",") if voter]
    roles = environment.get("KAFKA_PROCESS_ROLES", "broker").replace(" ", "").split(",")
    if len(voters) > 1 or "broker" not in roles:
        raise NotOneNode(
            "there is no KRaft mode: a broker that is its own controller can be replaced, a KRaft quorum cannot"
        )
    controllers = environment.get(_CONTROLLER_LISTENERS, "").replace(" ", "").split(",")
    left = {name: text for name, text in environment.items() if name not in _OF_KRAFT}
    if left.get(_ZOOKEEPER) in OWN_ZOOKEEPERS:
        del left[_ZOOKEEPER]
    for name in _WITH_LISTENERS:
        if name in left:
            listeners = left[name].split(",")
            left[name] = ",".join(one for one in listeners if one.strip().partition(":")[0] not in controllers)
    if "KAFKA_LISTENERS" not in left:
        left = {**DEFAULTS, **left}
    return left


def main() -> int:
    """Become `odradek serve`. Returns the exit status if that is impossible."""
    try:
        environment = single_node(os.environ)
    except NotOneNode as error:
        sys.stderr.write(f"odradek: {error}\n")
        return 1
    options = [option for line in READY_LINES for option in ("--ready-line", line)]
    os.execve(sys.executable, [sys.executable, "-m", "odradek", "serve", *options], environment)


if __name__ == "__main__":
    sys.exit(main())
