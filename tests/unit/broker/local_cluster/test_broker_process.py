from __future__ import annotations

import json
import sys

from odradek.broker.local_cluster.broker_process import BrokerProcess, tagged
from tests.support.async_test import async_test

PRINTS = """\
import sys, time
print("a warning", file=sys.stderr, flush=True)
print("  listening on  PLAINTEXT://127.0.0.1:4711", flush=True)
sys.stdout.write("without an end"); sys.stdout.flush()
time.sleep(60 if sys.argv[1:] else 0)
sys.exit(3)
"""


@async_test
async def test_lines_have_the_id_and_the_end_has_its_status() -> None:
    lines: list[str] = []
    broker = BrokerProcess(7, [sys.executable, "-c", PRINTS], lines.append)
    await broker.start()
    assert await broker.ended == 3
    assert await broker.started
    assert broker.address == "127.0.0.1:4711"
    assert lines == [
        "[broker 7] a warning",
        "[broker 7]   listening on  PLAINTEXT://127.0.0.1:4711",
        "[broker 7] without an end",
    ]
    broker.terminate()


@async_test
async def test_a_broker_that_serves_is_stopped_by_a_signal() -> None:
    broker = BrokerProcess(7, [sys.executable, "-c", PRINTS, "wait"], lambda line: None)
    await broker.start()
    assert await broker.started
    assert not broker.ended.done()
    broker.terminate()
    assert await broker.ended == -15


@async_test
async def test_a_broker_that_ends_before_it_serves() -> None:
    broker = BrokerProcess(7, [sys.executable, "-c", "raise SystemExit(1)"], lambda line: None)
    await broker.start()
    assert not await broker.started
    assert await broker.ended == 1
    killed = BrokerProcess(8, [sys.executable, "-c", "import time; time.sleep(60)"], lambda line: None)
    await killed.start()
    killed.kill()
    assert await killed.ended == -9


def test_a_json_line_gets_a_field() -> None:
    line = tagged(2, json.dumps({"level": "INFO", "message": "x"}))
    assert json.loads(line) == {"broker": 2, "level": "INFO", "message": "x"}
    assert tagged(2, "{not json") == "[broker 2] {not json"
