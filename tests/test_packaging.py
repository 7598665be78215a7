"""The wheel: nothing but `odradek` in it, all of `odradek` in it, and it works without the checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "testing", "timer")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a clean clone, so that nothing of this checkout but what is committed can be in it."""
    directory = tmp_path_factory.mktemp("wheel")
    clone = directory / "clone"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "1", f"file://{REPOSITORY}", str(clone)], check=True, timeout=60
    )
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), str(clone)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    [wheel] = directory.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_only_top_level_name_is_odradek(names: list[str]) -> None:
    top_level = {name.split("/")[0] for name in names}
    assert {name for name in top_level if not name.endswith(".dist-info")} == {"odradek"}
    assert len(top_level) == 2


def test_every_module_is_inside(names: list[str]) -> None:
    """The links under src/odradek were followed: each file of the checkout's packages is in the wheel, as a file."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD", *PACKAGES],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    expected = {f"odradek/{name}" for name in listed.stdout.splitlines() if name.endswith(".py")}
    assert len(expected) > 100
    assert expected - set(names) == set()


def test_types_are_declared(names: list[str]) -> None:
    assert {"odradek/py.typed", "odradek/__main__.py", "odradek/__init__.py"} <= set(names)


def test_no_tests_or_links_are_inside(wheel: Path, names: list[str]) -> None:
    assert not [name for name in names if re.search(r"(^|/)(tests/|test_|conftest)|\.pyc$", name)]
    with zipfile.ZipFile(wheel) as archive:
        assert not [entry.filename for entry in archive.infolist() if (entry.external_attr >> 28) == 0o12]


def test_the_command_is_declared(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [entry_points] = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "odradek = odradek.broker.cli:main" in archive.read(entry_points).decode()


def test_it_runs_where_the_checkout_is_not(wheel: Path, tmp_path: Path) -> None:
    """Imported from the archive's own files, with this environment's dependencies."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    script = "import odradek.broker.cli, sys; print(odradek.broker.cli.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
