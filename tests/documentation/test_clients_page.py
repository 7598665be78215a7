"""The page of tested clients is true: the command prints the same."""

from __future__ import annotations

import re
from pathlib import Path

from tests.documentation.clients_page import (
    AIOKAFKA,
    CONFLUENT,
    JAVA,
    KAFKA_PYTHON,
    SPARK,
    WRAPPED,
    WRAPPERS,
    clients_of,
    page,
)
from tests.documentation.pages import REPOSITORY

CONFORMANCE = REPOSITORY / "tests" / "conformance"


def test_the_page_is_what_the_command_prints() -> None:
    written = (REPOSITORY / "docs" / "clients.md").read_text("utf-8")
    assert written == page(), "python -m tests.documentation.clients_page > docs/clients.md"


def test_every_module_that_wraps_clients_is_known() -> None:
    """Of another one, all libraries that it imports would count for each file that imports it, and Java for none."""
    wrapping = re.compile(rf"^class (?:{'|'.join(WRAPPED)})", re.MULTILINE)
    modules = (REPOSITORY / "tests" / "support").rglob("*.py")
    assert {path.stem for path in modules if wrapping.search(path.read_text("utf-8"))} == set(WRAPPERS)


def test_clients_are_found_by_import_by_wrapper_and_by_fixture(tmp_path: Path) -> None:
    assert clients_of(CONFORMANCE / "clients" / "test_groups.py") >= {CONFLUENT, AIOKAFKA, KAFKA_PYTHON}
    assert clients_of(CONFORMANCE / "clients" / "test_clients_matrix.py") == {CONFLUENT, AIOKAFKA, KAFKA_PYTHON, JAVA}
    assert SPARK in clients_of(CONFORMANCE / "spark" / "test_spark_sink.py")
    module = tmp_path / "test_none.py"
    module.write_text("import os\nfrom tests.support.waiting import eventually\n")
    assert clients_of(module) == set()
    module = tmp_path / "test_tools.py"
    module.write_text("def test_topics(tools):\n    assert tools\n")
    assert clients_of(module) == {JAVA}
