"""ZooKeeper's own command line, `zkCli.sh`, with the metadata service and with a real ZooKeeper: the same lines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.apache.jvm import QUICK_START, java_command
from tests.support.processes.odradek_zookeeper import OdradekZooKeeper, running_zookeeper

TIMEOUT_S = 60

COMMANDS = """\
create /cli hello
create /cli other
get -s /cli
set /cli changed 0
set /cli changed 0
create -e /cli/ephemeral x
create -s /cli/sequential- y
create -c /cli/container z
create -t 1000 /cli/ttl z
create /nobody/child x
ls /cli/ephemeral
ls -R /zookeeper/quota
stat /cli
stat /none
getAllChildrenNumber /cli
getEphemerals /cli
getAcl /cli
addauth digest alice:secret
setAcl /cli auth:alice:cdrwa
getAcl -s /cli
setAcl /cli world:anyone:cdrwa
setAcl /cli nonsense
get -w /cli
set /cli fires
addWatch -m PERSISTENT /cli
set /cli again
removewatches /cli
removewatches /cli
sync /cli
delete /cli
deleteall /cli
ls /
whoami
version
close
quit
"""

DIFFERENT = (
    (re.compile(r"(?m)^(ctime|mtime) = .*$"), r"\1 = MOMENT"),
    (re.compile(r"ephemeralOwner = 0x[1-9a-f][0-9a-f]*"), "ephemeralOwner = SESSION"),
    (re.compile(r"0x[0-9a-f]{12,}"), "SESSION"),
    (re.compile(r"(127\.0\.0\.1|localhost)[^\s]*:\d+"), "SERVER"),
    (re.compile(r"(?m)^\[zk: [^\]]*\] \d*"), ""),
    (re.compile(r"(?m)^.*(INFO|WARN|DEBUG) .*$"), ""),
    # Another thread of the command line prints this, and may not come to it before the process exits.
    (re.compile(r"WATCHER::\s*WatchedEvent state:Closed type:None path:null\s*?\n"), "\n"),
)

IDENTITY = re.compile("(ip|digest): ")
"""A line of `whoami`: ZooKeeper keeps the identities of a client in no order."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ZooKeeper, OdradekZooKeeper]]:
    real = ZooKeeper(tmp_path_factory.mktemp("real"))
    real.start()
    try:
        with running_zookeeper(tmp_path_factory.mktemp("service")) as service:
            yield real, service
    finally:
        real.stop()


def _run(server: ZooKeeper | OdradekZooKeeper, directory: Path) -> list[str]:
    """The lines of the command line, without what differs between two servers by nature."""
    log4j = directory / "log4j.properties"
    log4j.write_text("log4j.rootLogger=OFF\n")
    options = (*QUICK_START, "-Xmx128m", f"-Dlog4j.configuration=file:{log4j}")
    command = java_command(
        "org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server", server.address, options=options
    )
    done = subprocess.run(
        command, input=COMMANDS, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=directory
    )
    text = done.stdout + done.stderr
    for pattern, replacement in DIFFERENT:
        text = pattern.sub(replacement, text)
    lines = [line for line in text.splitlines() if line.strip()]
    identities = sorted(line for line in lines if IDENTITY.match(line))
    return [identities.pop(0) if IDENTITY.match(line) else line for line in lines]


def test_the_command_line_prints_the_same(servers: tuple[ZooKeeper, OdradekZooKeeper], tmp_path: Path) -> None:
    expected, ours = (_run(server, tmp_path) for server in servers)
    assert ours == expected
    assert any("hello" in line for line in ours), ours
    assert len(ours) > 40, ours
