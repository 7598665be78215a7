"""What a broker with `odradek.as.version` advertises and refuses, against Apache's classes of these releases."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from tests.support.processes.apache.jvm import QUICK_START, REPOSITORY, JvmMissingError, java_executable, libs_dir
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

JARS = {"1.1": "kafka-clients-1.1.1.jar", "2.8": "kafka-clients-2.8.2.jar", "3.5": "kafka-clients-3.5.2.jar"}
JARS_DIR = REPOSITORY / ".cache" / "releases"
PROGRAM = REPOSITORY / "tests" / "support" / "jvm" / "ApiRanges.java"
UNSUPPORTED_VERSION = 35

Ranges = dict[int, tuple[int, int]]


@cache
def ranges_of_apache() -> dict[str, Ranges]:
    """By the name of the jar; one JVM for all."""
    jars = [JARS_DIR / jar for jar in JARS.values()]
    if missing := [str(jar) for jar in jars if not jar.is_file()]:
        raise JvmMissingError(f"{missing} are not there: run `make .cache/releases/.complete`")
    (slf4j,) = libs_dir().glob("slf4j-api-*.jar")
    command = [java_executable(), *QUICK_START, str(PROGRAM), str(slf4j), *map(str, jars)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    ranges: dict[str, Ranges] = {}
    for line in finished.stdout.splitlines():
        jar, key, lowest, highest = line.split()
        ranges.setdefault(Path(jar).name, {})[int(key)] = (int(lowest), int(highest))
    return ranges


@pytest.mark.parametrize("release", JARS)
def test_broker_advertises_and_serves_the_ranges_of_the_release(release: str, tmp_path: Path) -> None:
    expected = ranges_of_apache()[JARS[release]]
    broker = OdradekBroker(tmp_path)
    broker.options = ["--as-version", release]
    with running(broker):
        with RawClient(broker.host, broker.port) as client:
            answer = client.call(build(ApiKey.API_VERSIONS), 0)
        assert isinstance(answer, ApiVersionsResponse)
        assert {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys} == expected
        for key in (ApiKey.LIST_OFFSETS, ApiKey.LIST_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE):
            highest = expected.get(key, (0, -1))[1]
            with RawClient(broker.host, broker.port) as client:
                if highest >= 0:
                    client.call(build(key), highest)
                client.send(build(key), highest + 1)
                with pytest.raises(ConnectionClosedError):
                    client.receive_frame()
        own = expected[ApiKey.API_VERSIONS]
        with RawClient(broker.host, broker.port) as client:
            client.send(build(ApiKey.API_VERSIONS, client_software_name="x", client_software_version="1"), own[1] + 1)
            refused = client.receive(ApiKey.API_VERSIONS, 0)
        assert isinstance(refused, ApiVersionsResponse)
        assert refused.error_code == UNSUPPORTED_VERSION
        named = [(one.api_key, one.min_version, one.max_version) for one in refused.api_keys]
        assert named == ([] if release == "1.1" else [(ApiKey.API_VERSIONS, *own)])
