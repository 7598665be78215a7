"""SIGKILL of `odradek zookeeper`: what was answered is there afterwards, and clients come back to their sessions."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.support.processes.odradek_zookeeper import running_zookeeper
from tests.support.wire.zookeeper_script import RawClient, create, path_and_watch

CREATE, EXISTS = 1, 3
OK, NO_NODE = 0, -101
EPHEMERAL = 1
NODES = 200
LIFETIME_MS = 10_000


def _code(client: RawClient, kind: int, body: bytes) -> int:
    (answer,) = client.ask(kind, body)
    assert answer is not None
    return int(struct.unpack_from(">i", answer, 12)[0])


def test_what_was_answered_survives_and_the_session_goes_on(tmp_path: Path) -> None:
    with running_zookeeper(tmp_path) as service:
        client = RawClient(service.host, service.port)
        client.connect(LIFETIME_MS)
        assert _code(client, CREATE, create("/alive", flags=EPHEMERAL)) == OK
        for number in range(NODES):
            assert _code(client, CREATE, create(f"/node-{number}")) == OK
        service.kill()
        service.start()
        again = RawClient(service.host, service.port)
        again.connect(LIFETIME_MS, client.session_id, client.password)
        assert again.session_id == client.session_id
        codes = [_code(again, EXISTS, path_and_watch(f"/node-{number}")) for number in range(NODES)]
        assert codes == [OK] * NODES
        assert _code(again, EXISTS, path_and_watch("/alive")) == OK
        assert _code(again, EXISTS, path_and_watch("/never-made")) == NO_NODE
        client.close()
        again.close()
