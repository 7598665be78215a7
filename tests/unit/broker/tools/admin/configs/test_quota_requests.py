from __future__ import annotations

import pytest

from odradek.broker.tools.admin.configs.quota_requests import (
    Quotas,
    alter_quotas,
    describe_quotas,
    entity_text,
    java_double,
    quota_value,
    rows_of,
    values_text,
)
from odradek.broker.tools.command.failures import CommandFailed
from odradek.controller.admin.client_quotas import MatchType
from odradek.protocol.errors import ErrorCode
from tests.support.clusters.admin_cluster import outcome
from tests.support.clusters.admin_quotas import AdminQuotas


def test_quotas_are_described_strictly_or_not(quotas: AdminQuotas) -> None:
    quotas.entries = [({"user": "u"}, {"a": 1.0}), ({"user": "u", "client-id": None}, {"b": 2.0})]
    wanted: dict[str, tuple[MatchType, str | None]] = {"user": (MatchType.EXACT, "u")}
    only, both = Quotas({"user": "u"}, {"a": 1.0}), Quotas({"user": "u", "client-id": None}, {"b": 2.0})
    assert outcome(lambda client: describe_quotas(client, wanted, strict=True)) == [[only]]
    assert outcome(lambda client: describe_quotas(client, wanted, strict=False)) == [[only, both]]
    assert rows_of([both]) == [{"entity": {"user": "u", "client-id": None}, "quotas": {"b": 2.0}}]


def test_a_refused_change_is_an_error(quotas: AdminQuotas, capsys: pytest.CaptureFixture[str]) -> None:
    quotas.error = ErrorCode.INVALID_REQUEST
    assert outcome(lambda client: alter_quotas(client, {"user": None}, {}, ["a"]), status=1) == []
    assert capsys.readouterr().err.startswith("odradek: Altering quotas of the default user-principal: ")


def test_entities_and_values_as_kafka_prints_them() -> None:
    assert entity_text({"client-id": "c", "user": None}) == "the default user-principal, client-id 'c'"
    assert values_text({"a": 1.0, "b": 0.25}) == "a=1.0, b=0.25"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (1048576.5, "1048576.5"),
        (123456789012.0, "1.23456789012E11"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-2.5e-7, "-2.5E-7"),
        (float("inf"), "Infinity"),
        (-float("inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_as_java_prints_them(value: float, text: str) -> None:
    assert java_double(value) == text


def test_a_quota_is_a_number() -> None:
    assert quota_value("a", "1e3") == 1000.0
    assert quota_value("a", "1000d") == 1000.0
    for text in ("", "1k", "nan", "NaN", "1_000"):
        with pytest.raises(CommandFailed, match="Cannot parse quota configuration value for a"):
            quota_value("a", text)
