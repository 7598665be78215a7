from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.authorizer.ports import AclCreateResult, AclDeleteResult, Action, Authorizer
from odradek.controller.model.acls import AclBinding, AclBindingFilter, AclOperation, ResourceType
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from odradek.broker.security.authorizer.ports import AuthorizableRequestContext

KEY = "authorizer.class.name"
KAFKA = "kafka.security.authorizer.AclAuthorizer"


class NightOnly(Authorizer):
    """An authorizer of an operator."""

    events: ClassVar[list[str]] = []

    def configure(self, configs: Mapping[str, str]) -> None:
        self.events.append(f"configured {configs['night.begins']}")

    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action]) -> list[bool]:
        return [False for _ in actions]

    def authorize_by_resource_type(
        self, ctx: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        return False

    async def create_acls(
        self, ctx: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        return [AclCreateResult(None) for _ in bindings]

    async def delete_acls(
        self, ctx: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        return [AclDeleteResult(None) for _ in filters]

    def acls(self, acl_filter: AclBindingFilter) -> list[AclBinding]:
        return []

    def close(self) -> None:
        self.events.append("closed")


class WithoutAnswers(NightOnly):
    acls = None  # type: ignore[assignment]


class Waiting(NightOnly):
    async def authorize(self, ctx: object, actions: object) -> list[bool]:  # type: ignore[override]
        return []


class NotWaiting(NightOnly):
    def create_acls(self, ctx: object, bindings: object) -> list[AclCreateResult]:  # type: ignore[override]
        return []


@pytest.fixture(autouse=True)
def module_of_an_operator() -> Iterator[None]:
    module = ModuleType("night_shift")
    for of_operator in (NightOnly, WithoutAnswers, Waiting, NotWaiting):
        setattr(module, of_operator.__name__, of_operator)
    sys.modules[module.__name__] = module
    yield
    del sys.modules[module.__name__]


def test_no_authorizer_is_made_unless_one_is_named(tmp_path: Path) -> None:
    with in_process_broker(tmp_path) as broker:
        assert broker.services.authorizer is None
        assert not broker.run(broker.services.controller.client.exists("/kafka-acl"))


def test_the_authorizer_of_acls(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, {KEY: KAFKA, "super.users": "User:ANONYMOUS"}) as broker:
        assert isinstance(broker.services.authorizer, AclAuthorizer)
        assert broker.run(broker.services.controller.client.exists("/kafka-acl-extended/prefixed/DelegationToken"))
        assert broker.server.config.unknown_keys == []


def test_a_class_of_an_operator(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, {KEY: "night_shift:NightOnly", "night.begins": "22:00"}) as broker:
        assert isinstance(broker.services.authorizer, NightOnly)
        assert broker.services.authorizer.acl_count == -1
        assert not broker.run(broker.services.controller.client.exists("/kafka-acl"))
    assert NightOnly.events == ["configured 22:00", "closed"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({KEY: "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, "it keeps ACLs in KRaft"),
        ({KEY: "com.example.Authorizer"}, "there is no module com"),
        ({KEY: "night_shift:WithoutAnswers"}, "the class has no method acls"),
        ({KEY: "night_shift:Waiting"}, "the method authorize is async; the broker calls it without await"),
        ({KEY: "night_shift:NotWaiting"}, "the method create_acls is not async; the broker awaits it"),
        ({KEY: "night_shift:NightOnly"}, "the object cannot be made: KeyError: 'night.begins'"),
        ({KEY: KAFKA, "super.users": "alice"}, "super.users: expected a string in format principalType"),
        (
            {KEY: KAFKA, "authorizer.zookeeper.url": "127.0.0.1:1", "authorizer.zookeeper.connection.timeout.ms": "1"},
            "no ZooKeeper server at 127.0.0.1:1 answered within 1 ms",
        ),
        ({KEY: KAFKA, "authorizer.zookeeper.session.timeout.ms": "1"}, "only with authorizer.zookeeper.url"),
    ],
)
def test_a_start_that_is_refused(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    with pytest.raises(StartupError, match=message):
        InProcessBroker(tmp_path, settings)
