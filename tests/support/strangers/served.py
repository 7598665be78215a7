"""The broker that a suite of another project tests: Odradek's daemon, or Apache Kafka with a ZooKeeper of its own.

Also a command, for stand-ins that learn the ports from the suite: `python -m tests.support.strangers.served TARGET
DIRECTORY SETTINGS`, with the settings as JSON. It prints `serving` and the address of the ZooKeeper, and ends with its
standard input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.odradek_zookeeper import OdradekZooKeeper

TARGETS = ("odradek", "apache")


@contextmanager
def served(target: str, directory: Path, settings: Mapping[str, str], port: int = 0) -> Iterator[tuple[str, str]]:
    """A broker from its start to its end; its address, and that of its ZooKeeper with the chroot."""
    with ExitStack() as stack:
        service = (OdradekZooKeeper if target == "odradek" else ZooKeeper)(directory / "zookeeper")
        service.start()
        stack.callback(service.stop)
        zookeeper_connect = service.new_chroot()
        broker: OdradekBroker | ApacheBroker
        if target == "odradek":
            settings = {**settings, "zookeeper.connect": zookeeper_connect}
            broker = OdradekBroker(directory / "broker", settings, port)
        else:
            broker = ApacheBroker(directory / "broker", zookeeper_connect, settings, port=port)
        stack.callback(broker.close)
        broker.start()
        yield broker.bootstrap, zookeeper_connect
        if isinstance(broker, OdradekBroker):
            broker.stop_cleanly()


if __name__ == "__main__":
    _, chosen, place, given = sys.argv
    with served(chosen, Path(place), json.loads(given)) as (_, zookeeper):
        print("serving", zookeeper, flush=True)
        sys.stdin.read()
