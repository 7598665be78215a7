"""docs/testing.md: its files are written as they are there, and its tests pass."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.documentation.pages import REPOSITORY
from tests.unit.testing.test_pytest_plugin import run_pytest

PAGE = (REPOSITORY / "docs" / "testing.md").read_text("utf-8")
FILES = {
    name: code for code, name in re.findall(r"^```python\n(# (\w+\.py)\b.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}
WORKERS_TIMEOUT_S = 240
"""Eight processes import everything at the same time, perhaps beside other tests."""

WITHOUT_A_RUN_HERE = {"test_with_testcontainers.py", "test_spark.py"}


def write_files(directory: Path, *left_out: str) -> None:
    for name, code in FILES.items():
        if name not in left_out:
            (directory / name).write_text(code)


def test_every_snippet_is_a_file_and_passes(tmp_path: Path) -> None:
    assert PAGE.count("```python") == len(FILES)
    write_files(tmp_path, *WITHOUT_A_RUN_HERE)
    [ini] = re.findall(r"^```ini\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    done = run_pytest(tmp_path, "-q")
    tests = sum(code.count("def test_") for name, code in FILES.items() if name not in WITHOUT_A_RUN_HERE)
    assert f"{tests} passed" in done.stdout, done.stdout + done.stderr
    (tmp_path / "pytest.ini").write_text(ini)
    (tmp_path / "test_ini.py").write_text(INI)
    done = run_pytest(tmp_path, "-q", "test_ini.py")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


INI = """
import shop

def test_the_ini_file_configures_the_broker(kafka, odradek):
    assert odradek.topics() == ["orders", "shipments"]
    shop.place_orders(kafka, [])
"""


def test_files_that_are_not_run_here_compile() -> None:
    for name in WITHOUT_A_RUN_HERE:
        compile(FILES[name], name, "exec")


def test_the_table_counts_the_lines() -> None:
    [row] = re.findall(r"^\| lines of the test file \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    names = ("test_shop.py", "test_with_testcontainers.py", "test_with_a_mock.py")
    code = [[line for line in FILES[name].splitlines()[1:] if line.strip()] for name in names]
    assert [int(number) for number in row] == [len(lines) for lines in code]


def test_eight_workers_have_a_broker_each(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FILES["shop.py"])
    (tmp_path / "test_many.py").write_text(MANY)
    done = run_pytest(tmp_path, "-q", "-n", "8", plugins=("xdist",), timeout_s=WORKERS_TIMEOUT_S)
    assert "40 passed" in done.stdout, done.stdout + done.stderr


MANY = """
import pytest
import shop

@pytest.mark.parametrize("number", range(40))
def test_each_has_its_topic_alone(odradek, number):
    assert odradek.topics() == []
    shop.place_orders(odradek.bootstrap_servers, [{"id": str(number)}])
    assert odradek.topic("orders").keys() == [str(number).encode()]
"""


@pytest.mark.soak
def test_eight_workers_twenty_times(tmp_path: Path) -> None:
    for number in range(20):
        directory = tmp_path / str(number)
        directory.mkdir()
        before_s = time.monotonic()
        test_eight_workers_have_a_broker_each(directory)
        print(f"run {number + 1}: {time.monotonic() - before_s:.1f} s")
