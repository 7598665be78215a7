"""The check that a broker listens."""

from __future__ import annotations

import pytest

from spark_jobs.common import reachable
from spark_jobs.common.job import JobError
from spark_jobs.common.reachable import check_reachable


@pytest.mark.parametrize("server", ["localhost", "localhost:", "localhost:x", ":9092", "localhost:70000"])
def test_a_server_must_have_a_port(server: str) -> None:
    with pytest.raises(JobError, match=rf"^--other-bootstrap-servers: '{server}' is not HOST:PORT$"):
        check_reachable(server, "--other-bootstrap-servers")


def test_the_first_server_that_answers_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    class Connection:
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    def connect(address: tuple[str, int], _timeout: float) -> Connection:
        asked.append(address)
        if address[1] == 1:
            raise ConnectionRefusedError(111, "Connection refused")
        return Connection()

    monkeypatch.setattr(reachable.socket, "create_connection", connect)
    check_reachable("a:1, [::1]:2,c:3")
    assert asked == [("a", 1), ("::1", 2)]
    with pytest.raises(JobError, match=r"no broker can be reached \(a:1: Connection refused; b:1: Connection"):
        check_reachable("a:1,b:1")
