from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.broker.tools.admin.client.coordinators import KeyType, ask_all_brokers, ask_coordinators
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from tests.support.clusters.admin_cluster import AdminCluster, no_wait, outcome


class Answer(NamedTuple):
    error_code: int
    broker_id: int


class Coordinators:
    """Key `a` is at broker 1, `b` at broker 3, until they move."""

    def __init__(self, cluster: AdminCluster) -> None:
        self.brokers = {"a": 1, "b": 3}
        self.find_errors: list[ErrorCode] = []
        self.errors: list[ErrorCode | OSError] = []
        self.asked: list[tuple[int, tuple[str, ...]]] = []
        cluster.on(FindCoordinatorRequest, self._find)

    def _find(self, broker_id: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        error = self.find_errors.pop(0) if self.find_errors else ErrorCode.NONE
        found = [
            Coordinator(key=key, node_id=self.brokers[key], error_code=error, error_message=None)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=found)

    async def ask(self, broker_id: int, keys: Sequence[str]) -> Mapping[str, Answer]:
        self.asked.append((broker_id, tuple(keys)))
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        if isinstance(error, OSError):
            raise error
        return {key: Answer(error, broker_id) for key in keys}

    async def both(self, client: AdminClient) -> dict[str, Answer]:
        return await ask_coordinators(client, KeyType.GROUP, ["a", "b", "a"], self.ask)


@pytest.fixture
def coordinators(cluster: AdminCluster) -> Coordinators:
    return Coordinators(cluster)


def test_each_coordinator_is_asked_about_its_keys(coordinators: Coordinators) -> None:
    assert outcome(coordinators.both) == [{"a": Answer(0, 1), "b": Answer(0, 3)}]
    assert coordinators.asked == [(1, ("a",)), (3, ("b",))]


def test_no_time_is_lost_after_the_last_answer(coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdminClient, "back_off", no_wait)
    assert len(outcome(coordinators.both)) == 1


def test_an_error_that_stays_is_the_answer(coordinators: Coordinators) -> None:
    coordinators.errors = [ErrorCode.GROUP_ID_NOT_FOUND]
    assert outcome(coordinators.both) == [{"a": Answer(ErrorCode.GROUP_ID_NOT_FOUND, 1), "b": Answer(0, 3)}]


@pytest.mark.parametrize(
    "passing",
    [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ConnectionResetError("gone")],
)
def test_a_coordinator_that_loads_or_moves_is_asked_again(
    coordinators: Coordinators, passing: ErrorCode | OSError
) -> None:
    coordinators.errors = [passing]
    assert outcome(coordinators.both) == [{"b": Answer(0, 3), "a": Answer(0, 1)}]
    assert coordinators.asked[2:] == [(1, ("a",))]


def test_a_coordinator_that_is_not_known_yet_is_looked_for_again(coordinators: Coordinators) -> None:
    coordinators.find_errors = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert len(outcome(coordinators.both)) == 1


def test_another_error_of_the_search_ends_the_command(
    coordinators: Coordinators, capsys: pytest.CaptureFixture[str]
) -> None:
    coordinators.find_errors = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    assert outcome(coordinators.both, status=1) == []
    assert "odradek: the coordinator of group 'a': " in capsys.readouterr().err


def test_a_coordinator_that_never_answers_ends_the_command(
    coordinators: Coordinators, capsys: pytest.CaptureFixture[str]
) -> None:
    async def impatient(client: AdminClient) -> dict[str, Answer]:
        client.config = client.config._replace(api_timeout_ms=0)
        return await coordinators.both(client)

    coordinators.errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    assert outcome(impatient, status=1) == []
    assert capsys.readouterr().err == (
        "odradek: the coordinator of group 'a' does not answer: "
        "The coordinator is loading and hence can't process requests.\n"
    )


def test_a_broker_that_loads_for_too_long_ends_the_command(
    coordinators: Coordinators, capsys: pytest.CaptureFixture[str]
) -> None:
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    async def ask(broker_id: int) -> Answer:
        return Answer(loading if broker_id == 2 else ErrorCode.NONE, broker_id)

    async def impatient(client: AdminClient) -> dict[int, Answer]:
        client.config = client.config._replace(api_timeout_ms=0)
        return await ask_all_brokers(client, ask, tried_again=(loading,), what="Groups of broker")

    assert outcome(impatient, status=1) == []
    assert capsys.readouterr().err == (
        "odradek: Groups of broker 2: The coordinator is loading and hence can't process requests.\n"
    )


def test_brokers_without_a_common_version_end_the_command(coordinators: Coordinators) -> None:
    coordinators.errors = [VersionMismatch("too old")]
    assert outcome(coordinators.both, status=1) == []
