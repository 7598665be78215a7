"""What handlers ask an authorizer, and what they hear without one."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from odradek.broker.apis.authorization import (
    EVERY_OPERATION,
    authorize,
    authorize_by_resource_type,
    authorize_cluster,
    authorized_operations,
    filter_by_authorized,
)
from odradek.broker.apis.services import Services
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import RequestHeader
from odradek.timer.sliced_work import run_through
from tests.support.in_process.in_process_broker import FakeConnection

CONTEXT = AuthorizableRequestContext(
    "User:ANONYMOUS", "10.0.0.7", "PLAINTEXT", SecurityProtocol.PLAINTEXT, ApiKey.METADATA, 12, "me", 7
)


class OnlyReads:
    """An authorizer that allows READ and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Action] = []

    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action]) -> list[bool]:
        assert ctx == CONTEXT
        self.asked += actions
        return [action.operation is AclOperation.READ for action in actions]

    def authorize_by_resource_type(
        self, ctx: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        assert ctx == CONTEXT
        return operation is AclOperation.READ and resource_type is ResourceType.TOPIC


def broker_with(authorizer: object) -> Services:
    return cast("Services", SimpleNamespace(authorizer=authorizer))


@pytest.fixture
def ctx() -> RequestContext:
    return RequestContext(RequestHeader(ApiKey.METADATA, 12, 7, "me"), FakeConnection(), 0, 100)


def test_everything_is_allowed_without_an_authorizer(ctx: RequestContext) -> None:
    broker = broker_with(None)
    assert authorize(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC, "t")
    assert authorize_by_resource_type(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC)
    assert "any" in run_through(filter_by_authorized(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC, ["a"]))
    assert authorized_operations(broker, ctx, ResourceType.GROUP, "g") == 1 << 3 | 1 << 6 | 1 << 8
    authorize_cluster(broker, ctx, AclOperation.ALTER)


def test_a_resource_is_asked_once_with_the_number_of_its_mentions(ctx: RequestContext) -> None:
    asked = OnlyReads()
    asking = filter_by_authorized(
        broker_with(asked), ctx, AclOperation.READ, ResourceType.TOPIC, ["a", "b", "a"], log_if_denied=False
    )
    assert run_through(asking) == {"a", "b"}
    assert asked.asked == [
        Action(AclOperation.READ, ResourceType.TOPIC, "a", 2, log_if_denied=False),
        Action(AclOperation.READ, ResourceType.TOPIC, "b", 1, log_if_denied=False),
    ]


def test_what_is_denied(ctx: RequestContext) -> None:
    broker = broker_with(OnlyReads())
    assert not authorize(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC, "t")
    assert not run_through(filter_by_authorized(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC, ["a"]))
    assert authorize_by_resource_type(broker, ctx, AclOperation.READ, ResourceType.TOPIC)
    assert not authorize_by_resource_type(broker, ctx, AclOperation.READ, ResourceType.GROUP)
    with pytest.raises(KafkaError) as refused:
        authorize_cluster(broker, ctx, AclOperation.ALTER)
    assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_operations_are_asked_without_lines_in_the_audit_log(ctx: RequestContext) -> None:
    asked = OnlyReads()
    assert authorized_operations(broker_with(asked), ctx, ResourceType.CLUSTER, CLUSTER_NAME) == 0
    assert authorized_operations(broker_with(asked), ctx, ResourceType.TOPIC, "t") == 1 << AclOperation.READ
    assert not any(action.log_if_allowed or action.log_if_denied for action in asked.asked)
    assert {action.operation for action in asked.asked if action.resource_type is ResourceType.CLUSTER} == {
        operation for operation in AclOperation if EVERY_OPERATION[ResourceType.CLUSTER] >> operation & 1
    }
