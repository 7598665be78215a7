"""Options of the whole suite: which broker the conformance tests talk to, and whether golden answers are recorded."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("odradek")
    group.addoption(
        "--target",
        choices=("odradek", "apache"),
        default="odradek",
        help="the broker under test: odradek, or Apache Kafka 3.9 itself as the oracle (with -m oracle)",
    )
    group.addoption(
        "--record",
        action="store_true",
        help="with --target apache: write the golden answers of tests/golden instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python 3.0 reads its schemas through a deprecated call of the standard library.
    config.addinivalue_line("filterwarnings", "ignore:(read_text|open_text) is deprecated:DeprecationWarning")
