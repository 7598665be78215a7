"""The example of docs/authorizers.md is a module that a broker loads, and it decides what the page says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.config.python_class import new_instance
from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext, Authorizer
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.broker_info import SecurityProtocol
from tests.documentation.pages import REPOSITORY

EXAMPLE = re.compile(r"`([\w.]+)=(\w+:\w+)` with this file as `(\w+)\.py`:\n\n```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def authorizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authorizer]:
    ((key, path, module, code),) = EXAMPLE.findall((REPOSITORY / "docs" / "authorizers.md").read_text("utf-8"))
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert key == "authorizer.class.name"
    yield new_instance(key, path, Authorizer, {"team.admins": "User:root;User:boss"})
    del sys.modules[module]


@pytest.mark.parametrize(
    ("principal", "resource", "name", "may"),
    [
        ("User:sales-1", ResourceType.TOPIC, "sales.orders", True),
        ("User:sales-1", ResourceType.GROUP, "sales.app", True),
        ("User:sales-1", ResourceType.TOPIC, "hr.people", False),
        ("User:sales-1", ResourceType.CLUSTER, "kafka-cluster", False),
        ("User:boss", ResourceType.CLUSTER, "kafka-cluster", True),
    ],
)
def test_the_example(authorizer: Authorizer, principal: str, resource: ResourceType, name: str, may: bool) -> None:
    ctx = AuthorizableRequestContext(principal, "10.0.0.1", "SSL", SecurityProtocol.SSL, 0, 9, "client", 1)
    assert authorizer.authorize(ctx, [Action(AclOperation.READ, resource, name)]) == [may]
    some = authorizer.authorize_by_resource_type(ctx, AclOperation.WRITE, ResourceType.CLUSTER)
    assert some == (principal == "User:boss")
