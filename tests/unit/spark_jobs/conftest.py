"""A cluster whose answers the test sets, in place of sockets, and command lines that end the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.support.clusters.admin_cluster import AdminCluster
from tests.support.clusters.admin_groups import AdminGroups

Parse = Callable[[Sequence[str]], object]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> AdminCluster:
    cluster = AdminCluster()
    monkeypatch.setattr("odradek.broker.tools.admin.client.admin_client.SocketLink", cluster.make_link)
    AdminGroups(cluster)  # answers ListOffsets, too
    return cluster


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Callable[[Parse, Sequence[str]], str]:
    """The line with which a wrong command line ends, with status 2."""

    def refusal(parse: Parse, arguments: Sequence[str]) -> str:
        with pytest.raises(SystemExit) as ended:
            parse(arguments)
        assert ended.value.code == 2
        return capsys.readouterr().err.splitlines()[-1]

    return refusal


@pytest.fixture
def help_of(capsys: pytest.CaptureFixture[str]) -> Callable[[Parse], str]:
    """What `--help` prints."""

    def help_of(parse: Parse) -> str:
        with pytest.raises(SystemExit) as ended:
            parse(["--help"])
        assert ended.value.code == 0
        return capsys.readouterr().out

    return help_of
