from __future__ import annotations

import asyncio

import pytest

from odradek.broker.zookeeper.server import ZooKeeperServer
from tests.support.async_test import async_test
from tests.support.wire.zookeeper_script import create, path_and_watch
from tests.unit.broker.zookeeper.test_server import CREATE, EXISTS, TestedConnection, running

ALL = frozenset(("*",))


async def _answer(server: ZooKeeperServer, word: str) -> str:
    asking = TestedConnection(server)
    asking.connection.data_received(word.encode())
    while not asking.transport.is_closed:
        await asyncio.sleep(0)
    asking.connection.connection_lost(None)
    return asking.transport.written.decode()


@async_test
async def test_only_srvr_is_answered_by_default() -> None:
    server = await running()
    assert "Mode: standalone\n" in await _answer(server, "srvr")
    assert await _answer(server, "ruok") == "ruok is not executed because it is not in the whitelist.\n"
    await server.stop()


@async_test
async def test_words_of_the_whitelist() -> None:
    server = await running(words=frozenset(("ruok",)))
    assert await _answer(server, "ruok") == "imok"
    assert "not in the whitelist" in await _answer(server, "stat")
    await server.stop()


EXPECTED = {
    "ruok": ["imok"],
    "isro": ["rw"],
    "srvr": ["Zookeeper version: 3.8.4", "Received: 4\n", "Zxid: 0x2\n", "Node count: 6\n"],
    "stat": ["Clients:\n /10.0.0.1:1234[1](queued=0,recved=3,sent=3)\n"],
    "cons": ["sid=0x", "lop=EXIS"],
    "mntr": ["zk_znode_count\t6\n", "zk_watch_count\t1\n", "zk_ephemerals_count\t1\n", "zk_server_state\tstandalone\n"],
    "conf": ["clientPort=2181\n", "tickTime=500\n", "maxClientCnxns=60\n", "serverId=0\n"],
    "envi": ["Environment:\n", "zookeeper.version=3.8.4"],
    "dump": [
        "Session Sets (1)/(1):\n",
        "Sessions with Ephemerals (1):\n",
        "\t/e\n",
        "ip: /10.0.0.1:1234 sessionId: 0x",
    ],
    "wchs": ["1 connections watching 1 paths\nTotal watches:1\n\n"],
    "wchc": ["\t/e\n"],
    "wchp": ["/e\n\t0x"],
    "dirs": ["datadir_size: 0\n"],
    "crst": ["Connection stats reset.\n"],
    "srst": ["Server stats reset.\n"],
    "hash": ["hash is not executed because it is not in the whitelist.\n"],
}


@pytest.mark.parametrize("word", EXPECTED)
@async_test
async def test_answers(word: str) -> None:
    server = await running(words=ALL)
    client = TestedConnection(server)
    await client.connect()
    client.request(CREATE, create("/e", flags=1))
    client.request(EXISTS, path_and_watch("/e", True))
    await client.settled()
    answer = await _answer(server, word)
    for part in EXPECTED[word]:
        assert part in answer
    await server.stop()


@async_test
async def test_resets() -> None:
    server = await running(words=ALL)
    client = TestedConnection(server)
    await client.connect()
    await _answer(server, "srst")
    await _answer(server, "crst")
    assert server.stats.received == 1, "that of crst"
    assert client.connection.received == 0
    await server.stop()


@async_test
async def test_a_word_is_not_waited_for_when_the_database_has_failed() -> None:
    server = await running(words=ALL)
    asking = TestedConnection(server)
    server.thread.submit(lambda processor: processor.tree.store.close())
    server.thread.submit(lambda processor: processor.tree.store.begin())
    await asyncio.wait({server.failed}, timeout=5)
    server.answer_word(asking.connection, "srvr")
    await server.stop()
    assert server.failed.exception() is not None
    assert asking.transport.written == b""
