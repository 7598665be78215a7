from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.principal_builder import (
    AuthenticationContext,
    KafkaPrincipalBuilder,
    PrincipalRefused,
    build_principal,
    load_principal_builder,
)
from odradek.controller.model.broker_info import SecurityProtocol

KEY = "principal.builder.class"
CONTEXT = AuthenticationContext("X", SecurityProtocol.PLAINTEXT, "10.0.0.1", None, None, None, None)


class Echo(KafkaPrincipalBuilder):
    """Returns `principal`."""

    principal: object = "Robot:a:b"

    def build(self, context: AuthenticationContext) -> str:
        return self.principal  # type: ignore[return-value]


class Unfinished:
    def configure(self, configs: object) -> None: ...

    def close(self) -> None: ...


def test_a_listener_may_have_a_class_of_its_own_or_none() -> None:
    config = BrokerConfig({KEY: f"{__name__}:Echo"})
    builder = load_principal_builder(config, "X")
    assert isinstance(builder, Echo)
    assert build_principal(builder, CONTEXT) == "Robot:a:b"
    default = BrokerConfig({}).value(KEY)
    assert load_principal_builder(BrokerConfig({}), "X") is None
    config = BrokerConfig({KEY: f"{__name__}:Echo", f"listener.name.x.{KEY}": str(default)})
    assert load_principal_builder(config, "X") is None


@pytest.mark.parametrize("principal", [None, b"User:a", "", "User", "User:", ":a"])
def test_a_result_that_is_no_principal_is_refused(principal: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Echo, "principal", principal)
    with pytest.raises(PrincipalRefused, match="which is not like User:name"):
        build_principal(Echo(), CONTEXT)


def test_a_class_that_cannot_be_loaded_refuses_the_start() -> None:
    with pytest.raises(StartupError, match="the class has no method build"):
        load_principal_builder(BrokerConfig({KEY: f"{__name__}:Unfinished"}), "X")
    dynamic = BrokerConfig({}).with_dynamic(broker={KEY: f"{__name__}:Echo"}, default={})
    with pytest.raises(StartupError, match="is a dynamic config"):
        load_principal_builder(dynamic, "X")
