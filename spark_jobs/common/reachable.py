"""A check before Spark starts: does a broker listen?"""

from __future__ import annotations

import socket

from spark_jobs.common.job import JobError

CONNECT_TIMEOUT_S = 5
MAX_PORT = 65_535


def check_reachable(bootstrap_servers: str, option: str = "--bootstrap-servers") -> None:
    """Say at once that no broker listens: Kafka's clients would try for a minute, and Spark three times over.

    Raises: JobError.
    """
    failures: list[str] = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not (host and port.isdecimal() and int(port) <= MAX_PORT):
            raise JobError(f"{option}: {server.strip()!r} is not HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S):
                return
        except OSError as error:
            failures.append(f"{server.strip()}: {error.strerror or error}")
    raise JobError(f"no broker can be reached ({'; '.join(failures)})")
