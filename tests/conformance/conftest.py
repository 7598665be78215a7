"""Fixtures of the conformance tests: a broker of the chosen target, Kafka's tools, and names nobody else uses.

`broker` is one for the whole session; `new_broker` makes one for a single test that restarts it, kills it or needs
other settings. Both stop what they started, and a session broker that logged a traceback fails the last test.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.tools import Tools
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.transcripts.rights import ADMINISTRATOR, EVERYTHING
from tests.support.transcripts.secured import (
    ACL_AUTHORIZER,
    SecuredTranscript,
    write_entries,
)
from tests.support.transcripts.transcript import Transcript

NewBroker = Callable[..., Broker]
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "transcripts"


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def make_broker(
    request: pytest.FixtureRequest, target: str
) -> Callable[[Path, dict[str, str]], ApacheBroker | OdradekBroker]:
    """Makes brokers of the chosen target in a directory; the caller starts and closes them."""

    def make(directory: Path, settings: dict[str, str]) -> ApacheBroker | OdradekBroker:
        if target == "odradek":
            return OdradekBroker(directory, settings)
        zookeeper: ZooKeeper = request.getfixturevalue("zookeeper")
        return ApacheBroker(directory, zookeeper.new_chroot(), settings)

    return make


@pytest.fixture(scope="session")
def broker(make_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker that most tests share; a test leaves it running and as it found it."""
    process = make_broker(tmp_path_factory.mktemp("broker"), {})
    process.start()
    yield process
    log = process.log_text()
    process.stop()
    if process.target == "odradek":
        assert "Traceback (most recent call last)" not in log, log[log.index("Traceback") :][:4000]


@pytest.fixture
def new_broker(make_broker: NewBroker, tmp_path: Path) -> Iterator[NewBroker]:
    """Starts brokers of this test's own: `new_broker(**{"log.segment.bytes": "1024"})`."""
    started: list[ApacheBroker | OdradekBroker] = []

    def start(**settings: str) -> Broker:
        process = make_broker(tmp_path / f"broker-{len(started)}", settings)
        started.append(process)
        process.start()
        return process

    yield start
    for process in started:
        process.close()


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Names for topics and groups that no other test, and no earlier run, has used."""
    session = secrets.token_hex(3)
    counter = itertools.count(1)
    return lambda stem: f"{stem}-{session}-{next(counter)}"


@pytest.fixture
def transcript(
    broker: Broker, unique: Callable[[str], str], request: pytest.FixtureRequest, target: str
) -> Iterator[Transcript]:
    """Requests whose answers are compared with those of Apache Kafka in `tests/golden/transcripts`."""
    folder = request.path.stem.removeprefix("test_transcripts_")
    record = records(request, target)
    written = Transcript(broker, unique, golden_file(request, folder))
    yield written.with_internal_topics()
    written.finish(record=record)


def records(request: pytest.FixtureRequest, target: str) -> bool:
    """Whether the answers are written instead of compared."""
    record = bool(request.config.getoption("--record"))
    if record and target != "apache":
        pytest.fail("--record needs --target apache: golden answers come from Apache Kafka alone")
    return record


def golden_file(request: pytest.FixtureRequest, folder: str) -> Path:
    name = request.node.name.removeprefix("test_")
    return GOLDEN / folder / f"{name}.json"


@pytest.fixture(scope="session")
def secured_broker(zookeeper: ZooKeeper, target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with an AclAuthorizer, whose administrator has all rights from the start."""
    directory, connect = tmp_path_factory.mktemp("secured"), zookeeper.new_chroot()
    write_entries(connect, {ADMINISTRATOR: EVERYTHING})
    settings = {"authorizer.class.name": ACL_AUTHORIZER}
    process: ApacheBroker | OdradekBroker
    if target == "odradek":
        process = OdradekBroker(directory, {"zookeeper.connect": connect, **settings})
    else:
        process = ApacheBroker(directory, connect, settings)
    process.start()
    yield process
    log = process.log_text()
    process.stop()
    if target == "odradek":
        assert "Traceback (most recent call last)" not in log, log[log.index("Traceback") :][:4000]


@pytest.fixture
def secured(
    secured_broker: Broker, unique: Callable[[str], str], request: pytest.FixtureRequest, target: str
) -> Iterator[SecuredTranscript]:
    """A transcript of a client whose rights the test sets."""
    record = records(request, target)
    written = SecuredTranscript(secured_broker, unique, golden_file(request, "authorization"))
    yield written.with_internal_topics()
    written.finish(record=record)
