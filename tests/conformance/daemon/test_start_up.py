"""The modules that a start loads. Counts are compared and not times, which depend on the machine.

The first Metadata answer within 0.3 s is mostly a matter of imports: `make bench ARGS=start_up` measures it.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import RawClient

PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "timer")

NEEDED_LATER = {
    "cramjam",
    "crc32c",
    "gzip",
    "hashlib",
    "kazoo",
    "psutil",
    "sqlite3",
}
"""Loaded with the first compressed batch, the first record, the first connection to ZooKeeper and so on."""

NEVER_NEEDED = {
    "concurrent.futures.process",
    "decimal",
    "doctest",
    "email",
    "http",
    "importlib.metadata",
    "importlib.resources",
    "ipaddress",
    "multiprocessing",
    "pdb",
    "pickle",
    "pkg_resources",
    "platform",
    "prometheus_client",
    "setuptools",
    "tempfile",
    "unittest",
    "urllib.request",
    "uuid",
    "xml",
}
"""Of the standard library and of others: what comes in by accident. asyncio itself loads ssl and concurrent.futures."""

MODULES_MAX = 371
MESSAGE_MODULES_MAX = 28
"""Of the messages of over eighty APIs: those whose classes the parts of a broker that are always there work with."""

RESIDENT_MAX = 60 << 20


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The modules that a fresh interpreter has after importing all of the broker that serves."""
    program = "import json, sys, odradek.broker.daemon, odradek.broker.server; print(json.dumps(list(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    listed = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
    return set(json.loads(listed.stdout))


def is_folder(name: str) -> bool:
    return (REPOSITORY / "src" / Path(*name.split("."))).is_dir()


def test_import_loads_nothing_that_is_needed_later_or_never(imported: set[str]) -> None:
    assert imported & (NEEDED_LATER | NEVER_NEEDED) == set()
    assert not any(name.startswith("odradek.broker.metrics") for name in imported)


def test_import_loads_few_modules(imported: set[str]) -> None:
    """Folders do not count: their modules are empty."""
    own = {name for name in imported if name.startswith("odradek.") and not is_folder(name)}
    messages = {name for name in own if name.startswith("odradek.protocol.messages.")}
    handlers = {name for name in own if name.startswith("odradek.broker.apis.")}
    assert len(own) <= MODULES_MAX
    assert len(messages) <= MESSAGE_MODULES_MAX, sorted(messages)
    assert len(handlers) < 10, sorted(handlers)


@pytest.mark.parametrize(
    ("command", "modules_max"),
    [("data.produce", 76), ("data.consume", 82), ("perf.perf_produce", 78), ("perf.perf_consume", 85)],
)
def test_a_command_for_records_loads_few_modules(command: str, modules_max: int) -> None:
    """JSON, colours, groups and OpenSSL's hashes are for those that ask for them: they take a sixth of a start."""
    program = f"import sys, odradek.broker.tools.{command}; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    listed = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
    names = set(listed.stdout.decode().split())
    assert names & {"dataclasses", "datetime", "hashlib", "json", "pathlib", "random", "secrets"} == set()
    own = {name for name in names if name.startswith("odradek.")}
    assert len(own) <= modules_max, sorted(own)
    assert not {name for name in own if name.endswith("coder_source")}, "no functions are generated for a few messages"


def test_a_broker_that_serves_loads_what_it_uses(tmp_path: Path) -> None:
    """A broker that has answered one Metadata request has loaded SQLite, and neither compression nor ZooKeeper."""
    broker = OdradekBroker(tmp_path)
    broker.start()
    try:
        with RawClient(broker.host, broker.port) as client:
            client.call(MetadataRequest(topics=[]), 9)
        process = psutil.Process(broker.pid)
        mapped = {Path(region.path).name.partition(".")[0] for region in process.memory_maps()}
        assert "_sqlite3" in mapped
        assert mapped & {"cramjam", "_decimal", "_hashlib", "_multiprocessing", "_pickle"} == set()
        assert process.memory_info().rss <= RESIDENT_MAX
    finally:
        broker.close()


def test_every_dataclass_has_a_docstring() -> None:
    """Without one, `dataclasses` composes it from the signature: 0.6 ms for each of a hundred classes."""
    bare = [
        f"{path.relative_to(REPOSITORY)}: {node.name}"
        for package in PACKAGES
        for path in sorted((REPOSITORY / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(decorator).startswith("dataclass(") for decorator in node.decorator_list)
        and ast.get_docstring(node) is None
    ]
    assert bare == []
