from __future__ import annotations

import subprocess
import sys

import pytest

from odradek.protocol.api import API, ApiKey, ApiSpec


@pytest.mark.parametrize("spec", API.values(), ids=repr)
def test_the_table_repeats_the_message_modules(spec: ApiSpec) -> None:
    for message in (spec.request_type(), spec.response_type()):
        assert spec.key == message.API_KEY
        assert (spec.min_version, spec.max_version) == message.VERSIONS
        for version in range(spec.min_version, spec.max_version + 1):
            assert spec.is_flexible(version) == message.FLEXIBLE_VERSIONS.covers(version)


def test_every_key_has_a_row() -> None:
    assert list(API) == list(ApiKey)
    assert API[0].name == "Produce"


def test_names_are_kafkas() -> None:
    assert API[ApiKey.LEADER_AND_ISR].name == "LeaderAndIsr"
    assert API[ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS].name == "DescribeUserScramCredentials"


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 1, 1, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 3, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.ENVELOPE, 0, 2, 1),
    ],
)
def test_header_versions(key: ApiKey, version: int, request_header: int, response_header: int) -> None:
    assert API[key].request_header_version(version) == request_header
    assert API[key].response_header_version(version) == response_header


def test_the_table_imports_no_message() -> None:
    """Start-up pays only for what it uses."""
    program = "import sys, odradek.protocol.api; print([m for m in sys.modules if '.messages.' in m])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
