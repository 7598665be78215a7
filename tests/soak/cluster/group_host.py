"""Members of a consumer group in a process that can be killed: `python -m tests.soak.cluster.group_host BOOTSTRAP ...`.

Each member writes partition and number of a record to its file, and commits after that; the records in the files have
been delivered. A line on the standard input is a command: `join STRATEGY INSTANCE` (`-` for a dynamic member), or
`leave` for the oldest member.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import confluent_kafka

from tests.support.processes.apache.jvm import REPOSITORY

SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 10_000
DYNAMIC = "-"


class Host:
    """The process, seen from the test."""

    def __init__(self, directory: Path, number: int, bootstrap: str, group: str, topic: str) -> None:
        self.members = 0
        self._log = (directory / f"host-{number}.log").open("ab")
        command = [sys.executable, "-m", "tests.soak.cluster.group_host", bootstrap, group, topic, str(directory)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._log, stderr=subprocess.STDOUT, cwd=REPOSITORY
        )

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def join(self, strategy: str, instance: str = DYNAMIC) -> None:
        self._say(f"join {strategy} {instance}")
        self.members += 1

    def leave(self) -> None:
        self._say("leave")
        self.members -= 1

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def end(self) -> None:
        self._process.kill()
        self._process.wait(30)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._log.close()


class _Member:
    def __init__(self, bootstrap: str, group: str, topic: str, path: Path, strategy: str, instance: str) -> None:
        static = {} if instance == DYNAMIC else {"group.instance.id": instance}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "partition.assignment.strategy": strategy,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "max.poll.interval.ms": REBALANCE_TIMEOUT_MS,
                "heartbeat.interval.ms": 500,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
                **static,
            }
        )
        self._consumer.subscribe([topic])
        self._path = path
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        self._leaving.set()

    def _run(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            while not self._leaving.is_set():
                messages = self._consumer.consume(500, 0.2)
                read = [b"%d:%b\n" % (m.partition(), m.value()) for m in messages if not m.error()]
                if read:
                    file.write(b"".join(read))
                    self._commit()
        self._consumer.close()

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:  # of an earlier generation, or the coordinator is gone
            print(f"commit: {error}", flush=True)


def main(bootstrap: str, group: str, topic: str, directory: str) -> None:
    members: list[_Member] = []
    for line in sys.stdin:
        match line.split():
            case ["join", strategy, instance]:
                path = Path(directory) / f"{os.getpid()}-{len(members)}.read"
                members.append(_Member(bootstrap, group, topic, path, strategy, instance))
            case ["leave"]:
                next(member for member in members if not member._leaving.is_set()).leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
