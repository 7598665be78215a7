"""The test of a Spark job in docs/testing.md, with the session of this suite."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing import Broker
from tests.conformance.testing.test_testing_page import FILES
from tests.support.spark.pieces import MARKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS[1:]


def test_the_snippet_reads_what_was_produced(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = ModuleType("shop")
    exec(FILES["shop.py"], shop.__dict__)
    monkeypatch.setitem(sys.modules, "shop", shop)
    snippet: dict[str, Any] = {}
    exec(FILES["test_spark.py"], snippet)
    with Broker() as broker:
        snippet["test_a_job_reads_the_orders"](broker, spark)
