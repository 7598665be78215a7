"""Our tidy: the rules of the house that no other tool checks."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "timer")
MAX_LINES = 500
MAX_FUNCTION_LINES = 90  # the rule is about 70; a flat table or a docstring may need the rest
FORBIDDEN_NAMES = {"utils", "util", "helpers", "common", "misc"}

# The places where a bug is caught so that the rest goes on, and nothing else catches everything for good.
CATCHES_EVERYTHING = {
    "broker/dispatch.py": "a bug in a handler: the request gets UNKNOWN_SERVER_ERROR, the others go on",
    "broker/machine/io_pool.py": "a bug in work of a thread: it is handed to the loop, where bugs are reported",
    "controller/channels.py": "a bug in one request to a broker: logged, and the requests after it are sent",
    "controller/admin/config_changes.py": "a config that cannot be applied: logged, and those after it are applied",
    "controller/controller.py": "a bug in an event of the controller: logged, and the events after it are processed",
    "controller/tree/embedded_tree.py": "SQLite failed, or a bug in its thread: those who wait are told, it stops",
    "storage/cleaning/clean_run.py": "a bug in a compaction: logged, and the run ends as one whose worker has died",
    "storage/disk/worker.py": "a bug in work of a process: its traceback goes to the broker, and the process goes on",
    "timer/purgatory.py": "a bug in a waiting request: the others of its key are still looked at",
    "timer/system_timer.py": "a bug in a task: the tasks after it still run",
}

# Modules without a unit test of their own, and why that is right.
WITHOUT_UNIT_TEST: dict[str, str] = {
    "protocol/messages": "declarations: every version of every message is held against Kafka's definitions",
    "broker/apis": "handlers: the conformance transcripts compare their answers with Apache Kafka's",
    "broker/config/config_keys.py": "tables, held against Apache Kafka's DescribeConfigs by a transcript",
    "broker/config/keys": "a table, held against Apache Kafka's DescribeConfigs by a transcript",
}


# Unit tests of modules that are nothing but calls on sockets: a fake would only repeat what they say.
OPENS_SOCKETS: dict[str, str] = {
    "tests/unit/broker/network/test_direct_socket.py": "a pair of sockets, which is on no network",
    "tests/unit/broker/network/test_listening_socket.py": "binds free ports and connects nobody to them",
}


# Definitions that no running code names, and why they are there.
NAMED_BY_TESTS_ALONE: dict[str, str] = {
    "broker/machine/log_setup.py": "logging calls it",
    "broker/network/answer_receiver.py": "asyncio calls it",
    "broker/network/connection.py": "asyncio calls it",
    "controller/tree/zookeeper_connection.py": "kazoo calls it",
    "storage/disk/worker.py": "logging calls it",
    "protocol/messages": "declarations of the whole protocol, loaded by the names of the APIs",
    "timer/clock.py": "the clock of the tests, beside the port it stands in for",
    "protocol/api.py:flexible_version": "held against Kafka's definitions",
    "protocol/codec/codec.py:generated_source": "for a reader: it prints what the codec has written",
    "protocol/records/batch.py:assign_prefix": "tests are leaders: they give batches their offsets",
    "protocol/codec/schema.py:uint32": "a type of the schema language that no served API needs",
    "timer/purgatory.py:watched": "tests see by it that nothing is left",
    "timer/purgatory.py:num_keys": "tests see by it that nothing is left",
    "timer/system_timer.py:inspect": "tests see by it where tasks wait",
    "broker/machine/worker_processes.py:process_ids": "tests see by it that processes end",
    "controller/controller.py:controllership": "tests look into a term of office",
    "controller/tree/embedded_tree.py:expire_session": "tests have sessions expire",
    "controller/znodes/znodes.py:encode_partitions": "the other side of decoding: tests write what old tools wrote",
    "coordinator/group/coordinator.py:waiting_count": "tests see by it that nobody is left waiting",
    "coordinator/group/state/group_metadata.py:static_member_count": "tests see by it that nobody is left",
    "coordinator/transaction/markers.py:pending_count": "tests see by it that nothing is left",
    "protocol/errors.py:retriable": "what clients do with an error: tests are clients",
    "protocol/headers.py:decode_request": "the other side of what is encoded: tests are brokers",
    "storage/cleaning/log_cleaner.py:is_cleaning": "tests see by it whether the cleaner is at work",
    "storage/producers/producer_state_manager.py:first_undecided_offset": "tests see by it which transactions are open",
}


def sources(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((REPOSITORY / package).rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


OURS = list(sources(*PACKAGES, "spark_jobs"))
EVERYTHING = OURS + list(sources("tests"))


def ids(paths: list[Path]) -> list[str]:
    return [relative(path) for path in paths]


def test_the_links_are_the_packages() -> None:
    links = {path.name: path for path in (REPOSITORY / "src" / "odradek").iterdir() if path.is_symlink()}
    assert set(links) == set(PACKAGES)
    for name, link in links.items():
        assert str(link.readlink()) == f"../../{name}"
        assert (link / "__init__.py").is_file()


@pytest.mark.parametrize("path", EVERYTHING, ids=ids(EVERYTHING))
def test_a_module(path: Path) -> None:
    """What holds for each file: a docstring, a size, a name, and nothing left over."""
    text = path.read_text()
    name = relative(path)
    tree = ast.parse(text)
    if text.strip() and not name.startswith("tests/unit/"):  # a unit test is named after what has the docstring
        assert ast.get_docstring(tree), f"{name} has no module docstring"
    lines = text.count("\n")
    assert lines <= MAX_LINES, f"{name} has {lines} lines"
    assert path.stem not in FORBIDDEN_NAMES, f"{name}: say what is in it"
    leftover = re.search(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b", text)
    assert leftover is None, f"{name}: {leftover and leftover[0]}"


@pytest.mark.parametrize("path", OURS, ids=ids(OURS))
def test_functions_fit_on_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= MAX_FUNCTION_LINES, f"{relative(path)}: {node.name} has {lines} lines"


@pytest.mark.parametrize("path", OURS, ids=ids(OURS))
def test_only_named_places_catch_everything(path: Path) -> None:
    name = relative(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler) and catches_everything(node):
            assert name in CATCHES_EVERYTHING, f"{name}:{node.lineno} catches everything"


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Whether it takes any exception and does not raise it again when it has cleaned up."""
    if isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None:
        return False
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(t is None or (isinstance(t, ast.Name) and t.id in ("Exception", "BaseException")) for t in types)


def test_nothing_is_excused_that_needs_no_excuse() -> None:
    for name in CATCHES_EVERYTHING:
        tree = ast.parse((REPOSITORY / name).read_text())
        assert any(isinstance(node, ast.ExceptHandler) and catches_everything(node) for node in ast.walk(tree)), name
    for name in WITHOUT_UNIT_TEST:
        assert (REPOSITORY / name).exists(), name


def has_logic(path: Path) -> bool:
    """Whether a module does anything: it has a function whose body is more than the words of a port."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not all(map(is_silent, node.body))
        for node in ast.walk(ast.parse(path.read_text()))
    )


def is_silent(statement: ast.stmt) -> bool:
    """A docstring or `...`."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_excused(name: str) -> bool:
    return any(name == excused or name.startswith(f"{excused}/") for excused in WITHOUT_UNIT_TEST)


MODULES = [path for path in sources(*PACKAGES) if path.stem != "__init__" and not is_excused(relative(path))]


@pytest.mark.parametrize("path", [path for path in MODULES if has_logic(path)], ids=relative)
def test_a_module_has_its_unit_test(path: Path) -> None:
    """tests/unit mirrors the packages: timer/task.py is tested by tests/unit/timer/test_task.py."""
    mirror = REPOSITORY / "tests" / "unit" / path.relative_to(REPOSITORY).parent
    assert list(mirror.glob(f"test_{path.stem}*.py")), f"no {relative(mirror)}/test_{path.stem}.py for {relative(path)}"


def test_unit_tests_open_no_socket_and_do_not_sleep() -> None:
    opens_sockets = set()
    for path in sources("tests/unit"):
        text = path.read_text()
        if "socket" not in text and "sleep" not in text:
            continue  # nothing to look for
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import) and "socket" in {alias.name for alias in node.names}:
                opens_sockets.add(relative(path))
            if isinstance(node, ast.ImportFrom) and node.module == "socket":
                opens_sockets.add(relative(path))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert ast.unparse(node.func) != "time.sleep", f"{relative(path)}:{node.lineno}"
    assert opens_sockets == set(OPENS_SOCKETS)


def test_what_is_defined_is_used_by_more_than_tests() -> None:
    """A definition that only tests name is tested for nothing, and may differ from what runs."""
    trees = {path: ast.parse(path.read_text()) for path in OURS}
    imported = {(name, alias.name) for tree in trees.values() for name, alias in imports(tree)}
    attributes = Counter(name for tree in trees.values() for name in named(tree, ast.Attribute))
    unused = set()
    for path, tree in trees.items():
        module = relative(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        module = module if module.startswith("spark_jobs") else f"odradek.{module}"
        names = Counter(named(tree, ast.Name))
        for owner, node in definitions(tree):
            is_called = attributes[node.name] > Counter(named(node, ast.Attribute))[node.name]
            is_loaded = names[node.name] > Counter(named(node, ast.Name))[node.name]
            if not is_called and (owner is not None or not (is_loaded or (module, node.name) in imported)):
                unused.add(f"{relative(path)}:{node.name}")
    excused = {one for one in unused for excuse in NAMED_BY_TESTS_ALONE if one.startswith(excuse)}
    assert not unused - excused, sorted(unused - excused)
    for excuse in NAMED_BY_TESTS_ALONE:
        assert any(one.startswith(excuse) for one in unused), f"{excuse} needs no excuse"


def test_what_stands_for_nothing_is_defined_once() -> None:
    """NO_LEADER, UNKNOWN_OFFSET and their like: two definitions of one name could come to differ."""
    modules: dict[str, list[str]] = {}
    for path in OURS:
        for node in ast.parse(path.read_text()).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
                modules.setdefault(target.id.lstrip("_"), []).append(relative(path))
    assert len(modules) > 20, "the constants are found"
    assert not {name: where for name, where in modules.items() if len(where) > 1}


def named(tree: ast.AST, kind: type[ast.Attribute | ast.Name]) -> Iterator[str]:
    """The attributes, or the plain names, that are read; the type of a cast, a text, counts as a name."""
    for node in ast.walk(tree):
        if isinstance(node, kind) and isinstance(node.ctx, ast.Load):
            yield node.attr if isinstance(node, ast.Attribute) else node.id
        elif kind is ast.Name and isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            yield str(ast.literal_eval(node.args[0])) if isinstance(node.args[0], ast.Constant) else ""


def imports(tree: ast.Module) -> Iterator[tuple[str, ast.alias]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.module or "", alias


def definitions(tree: ast.Module) -> Iterator[tuple[str | None, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """The classes and functions of a module, and the methods, each with its class."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield None, node
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and not method.name.startswith("__"):
                    yield node.name, method
