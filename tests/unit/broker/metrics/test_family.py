"""The names are those that Strimzi's rules for the JMX exporter make of the MBeans."""

from __future__ import annotations

import re

import pytest

from odradek.broker.metrics.families.families import FAMILIES
from odradek.broker.metrics.family import NOT_IN_JMX, Family, Kind

METERS = ("VerificationFailureRate", "cleaner-io")
"""Those whose names do not end in `PerSec`: the rule for all other counts applies."""

OF_KAFKA = [family for family in FAMILIES if family.mbean != NOT_IN_JMX]


def ruled(mbean: str) -> str:
    """What the rules make of an MBean."""
    domain, _, keys = mbean.partition(":")
    pairs = dict(pair.split("=", 1) for pair in keys.partition("#")[0].split(","))
    attribute = mbean.partition("#")[2]
    name = attribute or pairs["name"]
    parts = [*domain.split("."), pairs["type"], name]
    text = re.sub(r"[^a-z0-9_]", "_", "_".join(parts).lower())
    if name in METERS:
        return f"{text}_count"
    if re.search(r"PerSec\w*$", name):
        return re.sub(r"persec\w*$", "_total", text)
    return re.sub(r"percent$", "_percent", text) if "Percent" in name else text


@pytest.mark.parametrize("family", OF_KAFKA, ids=lambda family: family.name)
def test_a_name_is_what_the_rules_make_of_its_mbean(family: Family) -> None:
    name = "connections" if family.name.endswith("connections_software") else None
    expected = ruled(family.mbean)
    assert family.name == (f"{expected}_software" if name else expected)


def test_each_name_is_there_once_and_says_what_it_is() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))
    for family in FAMILIES:
        assert family.description.endswith("."), family.name
        assert (family.kind is Kind.COUNTER) == family.name.endswith("_total"), family.name
        assert (family.histograms is not None) == (family.kind is Kind.SUMMARY), family.name
