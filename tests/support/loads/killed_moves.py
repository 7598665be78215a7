"""A broker with two disks is killed again and again while its partitions move between them under load."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

from odradek.protocol.api import ApiKey
from tests.support.admin import Admin
from tests.support.loads.numbered_load import PARTITIONS, Load, check_complete
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.process import ProcessError
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

TOPIC = "moving"


class KilledMoves:
    """The run. `refused` counts the starts that needed an operator, `finished` the moves that came to their end."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.dirs = [str(path / name) for name in ("disk-0", "disk-1")]
        self.broker = OdradekBroker(path, {"log.dirs": ",".join(self.dirs), "log.segment.bytes": "50000"})
        self.refused = self.finished = 0
        self._rng = rng
        self._targets: dict[int, int] = {}

    def run(self, kills: int) -> None:
        self.broker.start()
        Admin(self.broker.bootstrap).create_topic(TOPIC, PARTITIONS)
        load = Load(self.broker.bootstrap, TOPIC, idempotent=True)
        try:
            for _ in range(kills):
                before = load.total
                eventually(lambda: load.total, accept=lambda total, before=before: total > before, timeout_s=30)
                self._move_for(self._rng.uniform(0.05, 0.6))
                self.broker.kill()
                self._start()
        finally:
            load.finish()
        check_complete(load, self.broker.bootstrap)
        eventually(self._where, accept=lambda found: all(len(names) == 1 for names in found.values()), timeout_s=30)

    def _move_for(self, seconds: float) -> None:
        """Send every partition to the other disk as soon as it has arrived on one."""
        deadline = time.monotonic() + seconds
        with RawClient(self.broker.host, self.broker.port) as client:
            while time.monotonic() < deadline:
                for partition, names in self._where().items():
                    if len(names) == 1:
                        self.finished += 1
                        self._targets[partition] = 1 - names[0]
                        path = self.dirs[self._targets[partition]]
                        dirs = [{"path": path, "topics": [{"name": TOPIC, "partitions": [partition]}]}]
                        client.call(build(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=dirs), 2)
                time.sleep(0.005)

    def _where(self) -> dict[int, list[int]]:
        """The disks each partition has a directory on."""
        found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        for number, path in enumerate(self.dirs):
            for name in os.listdir(path):
                stem, _, rest = name.partition(".")
                if stem.startswith(f"{TOPIC}-") and not rest.endswith("-delete"):
                    found[int(stem.rpartition("-")[2])].append(number)
        return found

    def _start(self) -> None:
        """Start; between the two renames of a swap both directories have the partition's name, and an operator has to
        delete one: the one it has come from.
        """
        while True:
            try:
                self.broker.start()
                return
            except ProcessError:
                if "Duplicate log directories for" not in self.broker.log_text():
                    raise
                self.refused += 1
                for partition in range(PARTITIONS):
                    plain = [Path(path) / f"{TOPIC}-{partition}" for path in self.dirs]
                    if all(path.exists() for path in plain):
                        shutil.rmtree(plain[1 - self._targets[partition]])
