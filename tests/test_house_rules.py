"""Our tidy: the rules of the house that no other tool checks."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import TypeGuard

import pytest

import odradek
from odradek.broker import cli
from odradek.broker.apis import HANDLERS
from odradek.protocol.api import API, ApiKey
from tests.benchmarks.catalog import BESIDE_APACHE, GROUPS

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("broker", "controller", "coordinator", "protocol", "storage", "testing", "timer")
MAX_LINES = 500
MAX_FILES = 17
FULL_FOLDERS = {"protocol/messages": "a module for each API"}
MAX_FUNCTION_LINES = 90  # the rule is about 70; a flat table or a docstring may need the rest
FORBIDDEN_NAMES = {"utils", "util", "helpers", "common", "misc"}

# The places where a bug is caught so that the rest goes on, and nothing else catches everything for good.
CATCHES_EVERYTHING = {
    "broker/network/authentication/authentication.py": "a bug in an exchange, or in an operator's class: it is logged",
    "broker/network/authentication/principals.py": "an error of an operator's class: it is logged when it is closed",
    "broker/server.py": "an error of an operator's class: it is logged, and the stop goes on",
    "broker/network/requests/request_observer.py": "an error of an observer: logged once, the client is answered",
    "broker/security/principal_builder.py": "an error of an operator's class: the client is refused",
    "broker/security/sasl/callback_handlers.py": "an error of an operator's class: the client is refused",
    "broker/security/sasl/oauth/refreshing_jwks.py": "a failed refresh: it is logged and repeated, and clients go on",
    "broker/metadata/consumer_offset_tree.py": "a failed read or write: the request gets UNKNOWN_SERVER_ERROR",
    "broker/quotas/client_quota_callback.py": "an error of an operator's class: the request has no quota",
    "broker/quotas/quota_managers.py": "an error of an operator's class: it is logged, and the limits stay",
    "broker/config/python_class.py": "an error of an operator's class: the start is refused with it",
    "broker/coordinators/coordinator_log.py": "a bug in the making of a batch: logged, and its append is answered",
    "broker/dispatch.py": "a bug in a handler: the request gets UNKNOWN_SERVER_ERROR, the others go on",
    "broker/machine/io_pool.py": "a bug in work of a thread: it is handed to the loop, where bugs are reported",
    "broker/tools/command/socket_loop.py": "an error of a coroutine: it is raised in the coroutine that waits for it",
    "broker/zookeeper/tree_thread.py": "SQLite failed, or a bug in its thread: the service stops",
    "controller/channels.py": "a bug in one request to a broker: logged, and the requests after it are sent",
    "controller/admin/policies.py": "a bug in an operator's policy: the request gets UNKNOWN_SERVER_ERROR",
    "controller/admin/config_changes.py": "a config that cannot be applied: logged, and those after it are applied",
    "controller/admin/node_changes.py": "a bug in the work for one notification: logged, and the next one follows",
    "controller/controller.py": "a bug in an event of the controller: logged, and the events after it are processed",
    "controller/tree/embedded_tree.py": "SQLite failed, or a bug in its thread: those who wait are told, it stops",
    "storage/cleaning/clean_run.py": "a bug in a compaction: logged, and the run ends as one whose worker has died",
    "testing/pytest_plugin.py": "a report that cannot be made: the report says so, and the run of pytest goes on",
    "testing/node/child.py": "an error of a question: it is raised in the test process that asks",
    "testing/node/thread_node.py": "an error of a start or stop: the future of the facade has it",
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
    "tests/unit/broker/network/sockets/test_direct_socket.py": "a pair of sockets, which is on no network",
    "tests/unit/broker/tools/command/test_socket_link.py": "its other end is a thread of the test, on a free port",
    "tests/unit/broker/tools/command/test_tls_socket.py": "pairs of sockets, which are on no network",
    "tests/unit/broker/tools/command/test_socket_loop.py": "pairs of sockets, which are on no network",
    "tests/unit/broker/network/authentication/test_tls_handshakes.py": "a flag of a call on a fake socket",
    "tests/unit/broker/network/sockets/test_listening_socket.py": "binds free ports and connects nobody to them",
}


# Definitions that no running code names, and why they are there.
NAMED_BY_TESTS_ALONE: dict[str, str] = {
    "broker/machine/log_setup.py": "logging calls it",
    "broker/network/frames/answer_receiver.py": "asyncio calls it",
    "broker/network/connection/connection.py": "asyncio calls it",
    "broker/network/frames/large_frame_receiver.py": "asyncio calls it",
    "broker/network/frames/chunk_receiver.py": "asyncio calls it",
    "broker/zookeeper/connection.py": "asyncio calls it",
    "spark_jobs/kafka_log/source.py": "Spark calls it",
    "controller/tree/zookeeper_connection.py": "kazoo calls it",
    "controller/tree/zookeeper_multi_read.py": "kazoo calls it",
    "controller/tree/zookeeper_sasl.py": "kazoo calls it",
    "storage/disk/worker.py": "logging calls it",
    "protocol/messages": "declarations of the whole protocol, loaded by the names of the APIs",
    "controller/admin/policies.py:PolicyViolation": "policies of operators raise it",
    "testing/": "the interface of users' tests",
    "timer/clock.py": "the clock of the tests, beside the port it stands in for",
    "protocol/codec/codec.py:generated_source": "for a reader: it prints what the codec has written",
    "protocol/records/batch.py:assign_prefix": "tests are leaders: they give batches their offsets",
    "protocol/codec/schema.py:uint32": "a type of the schema language that no served API needs",
    "timer/purgatory.py:num_keys": "tests see by it that nothing is left",
    "controller/model/acls.py:_missing_": "enum calls it",
    "broker/machine/worker_processes.py:process_ids": "tests see by it that processes end",
    "controller/znodes/znodes.py:encode_partitions": "the other side of decoding: tests write what old tools wrote",
    "coordinator/group/coordinator.py:waiting_count": "tests see by it that nobody is left waiting",
    "coordinator/group/state/group_metadata.py:static_member_count": "tests see by it that nobody is left",
    "coordinator/transaction/markers.py:pending_count": "tests see by it that nothing is left",
    "protocol/headers.py:decode_request": "the other side of what is encoded: tests are brokers",
    "storage/cleaning/log_cleaner.py:is_cleaning": "tests see by it whether the cleaner is at work",
    "storage/producers/producer_state_manager.py:first_undecided_offset": "tests see by it which transactions are open",
}


class Source:
    """A file of the repository, which is read and parsed once for all rules."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(REPOSITORY))
        self.text = path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def sources(*folders: str) -> list[Source]:
    return [Source(path) for folder in folders for path in sorted((REPOSITORY / folder).rglob("*.py"))]


@pytest.fixture(scope="module")
def ours() -> list[Source]:
    """What runs: the packages and the Spark jobs."""
    return sources(*PACKAGES, "spark_jobs")


@pytest.fixture(scope="module")
def tests() -> list[Source]:
    return sources("tests")


def none(findings: Iterable[str]) -> None:
    """Fail with all findings, one in a line."""
    found = list(findings)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_the_links_are_the_packages() -> None:
    links = {path.name: path for path in (REPOSITORY / "src" / "odradek").iterdir() if path.is_symlink()}
    assert set(links) == set(PACKAGES)
    for name, link in links.items():
        assert str(link.readlink()) == f"../../{name}"
        assert (link / "__init__.py").is_file()


def test_modules_have_a_docstring(ours: list[Source], tests: list[Source]) -> None:
    """A unit test needs none: it is named after the module that has one."""
    begins = re.compile(r"(#.*\n)*r?\"\"\"\S")  # far cheaper than a parse of every test
    written = [each for each in ours + tests if each.text.strip() and not each.name.startswith("tests/unit/")]
    none(f"{each.name} has no module docstring" for each in written if not begins.match(each.text))


def test_files_are_short(ours: list[Source], tests: list[Source]) -> None:
    lines = {each.name: each.text.count("\n") for each in ours + tests}
    none(f"{name} has {count} lines, more than {MAX_LINES}" for name, count in lines.items() if count > MAX_LINES)


def test_folders_hold_few_files(ours: list[Source], tests: list[Source]) -> None:
    """A reader sees at a glance what is in a folder. `__init__.py` and folders inside do not count."""
    files = Counter(str(Path(each.name).parent) for each in ours + tests if each.path.stem != "__init__")
    none(
        f"{folder} has {count} files, more than {MAX_FILES}"
        for folder, count in files.items()
        if count > MAX_FILES and folder not in FULL_FOLDERS
    )
    none(f"{folder} needs no excuse: it has few files" for folder in FULL_FOLDERS if files[folder] <= MAX_FILES)


def test_file_names_say_what_is_in_them(ours: list[Source], tests: list[Source]) -> None:
    none(f"{each.name}: say what is in it" for each in ours + tests if each.path.stem in FORBIDDEN_NAMES)


def test_nothing_is_left_over(ours: list[Source], tests: list[Source]) -> None:
    leftover = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")
    none(f"{each.name}: {found[0]}" for each in ours + tests for found in leftover.finditer(each.text))


def test_functions_fit_on_a_screen(ours: list[Source]) -> None:
    lengths = (
        (f"{each.name}:{node.lineno} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
        for each in ours
        for node in each.functions
    )
    none(f"{name} has {lines} lines" for name, lines in lengths if lines > MAX_FUNCTION_LINES)


def test_only_named_places_catch_everything(ours: list[Source]) -> None:
    catching = {each.name: lines for each in ours if (lines := lines_that_catch_everything(each))}
    none(
        f"{name}:{line} catches everything"
        for name, lines in catching.items()
        if name not in CATCHES_EVERYTHING
        for line in lines
    )
    none(f"{name} needs no excuse: it catches nothing for good" for name in CATCHES_EVERYTHING if name not in catching)


def lines_that_catch_everything(source: Source) -> list[int]:
    if "except" not in source.text:
        return []
    handlers = (node for node in ast.walk(source.tree) if isinstance(node, ast.ExceptHandler))
    return [node.lineno for node in handlers if catches_everything(node)]


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Whether it takes any exception and does not raise it again when it has cleaned up."""
    if isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None:
        return False
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(t is None or (isinstance(t, ast.Name) and t.id in ("Exception", "BaseException")) for t in types)


def test_a_module_has_its_unit_test(ours: list[Source]) -> None:
    """tests/unit mirrors the packages: timer/task.py is tested by tests/unit/timer/test_task.py."""
    none(f"{excused} needs no excuse: it is not there" for excused in WITHOUT_UNIT_TEST if not exists(excused))
    for_tests = (each for each in ours if each.path.stem != "__init__" and not is_excused(each.name))
    none(
        f"no {mirror.relative_to(REPOSITORY)}/test_{each.path.stem}.py for {each.name}"
        for each in for_tests
        if (mirror := REPOSITORY / "tests" / "unit" / Path(each.name).parent)
        and not each.name.startswith("spark_jobs/")
        and not any(mirror.glob(f"test_{each.path.stem}*.py"))
        and has_logic(each)
    )


def exists(name: str) -> bool:
    return (REPOSITORY / name).exists()


def is_excused(name: str) -> bool:
    return any(name == excused or name.startswith(f"{excused}/") for excused in WITHOUT_UNIT_TEST)


def has_logic(source: Source) -> bool:
    """Whether a module does anything: it has a function whose body is more than the words of a port."""
    return any(not all(map(is_silent, node.body)) for node in source.functions)


def is_silent(statement: ast.stmt) -> bool:
    """A docstring or `...`."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def test_unit_tests_do_not_sleep(tests: list[Source]) -> None:
    none(
        f"{each.name}:{node.lineno} sleeps"
        for each in unit_tests_with("time.sleep", tests)
        for node in ast.walk(each.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if ast.unparse(node.func) == "time.sleep"
    )


def test_unit_tests_open_no_socket(tests: list[Source]) -> None:
    opens = {each.name for each in unit_tests_with("socket", tests) if any(map(imports_socket, ast.walk(each.tree)))}
    none(f"{name} imports socket" for name in sorted(opens - set(OPENS_SOCKETS)))
    none(f"{name} needs no excuse: it imports no socket" for name in sorted(set(OPENS_SOCKETS) - opens))


def unit_tests_with(word: str, tests: list[Source]) -> list[Source]:
    return [each for each in tests if each.name.startswith("tests/unit/") and word in each.text]


def imports_socket(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name == "socket" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and node.module == "socket"


def test_what_is_defined_is_used_by_more_than_tests(ours: list[Source]) -> None:
    """A definition that only tests name is tested for nothing, and may differ from what runs."""
    imported = {(name, alias.name) for each in ours for name, alias in imports(each.tree)}
    attributes = Counter(name for each in ours for name in named(each.tree, ast.Attribute))
    unused = set()
    for each in ours:
        module = each.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        module = module if module.startswith("spark_jobs") else f"odradek.{module}"
        names = Counter(named(each.tree, ast.Name))
        for owner, node in definitions(each.tree):
            is_called = attributes[node.name] > Counter(named(node, ast.Attribute))[node.name]
            is_loaded = names[node.name] > Counter(named(node, ast.Name))[node.name]
            if not is_called and (owner is not None or not (is_loaded or (module, node.name) in imported)):
                unused.add(f"{each.name}:{node.name}")
    excused = {one for one in unused for excuse in NAMED_BY_TESTS_ALONE if one.startswith(excuse)}
    none(f"{one} is named by tests alone" for one in sorted(unused - excused))
    needless = (excuse for excuse in NAMED_BY_TESTS_ALONE if not any(one.startswith(excuse) for one in unused))
    none(f"{excuse} needs no excuse: all of it is used" for excuse in needless)


def test_private_constants_and_loggers_are_used(ours: list[Source]) -> None:
    """By the module that assigns them. Names that its texts have count: a table may name them."""
    for_its_own = re.compile(r"_(?!_)\w|logger$|state_change_log$")
    for each in ours:
        assigned = [node for node in each.tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        names = {name.id for node in assigned for name in ast.walk(node) if is_assigned(name)}
        unused = {name for name in names if for_its_own.match(name) and len(re.findall(rf"\b{name}\b", each.text)) < 2}
        none(f"{each.name} does not use {name}" for name in sorted(unused))


def test_constants_of_tests_are_used(tests: list[Source]) -> None:
    """A limit that nothing uses bounds nothing."""
    named_in_tests = Counter(name for each in tests for name in re.findall(r"\b[A-Z][A-Z0-9_]+\b", each.text))
    assigned = re.compile(r"^([A-Z][A-Z0-9_]+)(?:: [^=\n]+)? = ", re.MULTILINE)
    none(
        f"no test uses {name}, which {each.name} assigns"
        for each in tests
        for name in assigned.findall(each.text)
        if named_in_tests[name] == 1
    )


def is_assigned(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def test_what_stands_for_nothing_is_defined_once(ours: list[Source]) -> None:
    """NO_LEADER, UNKNOWN_OFFSET and their like: two definitions of one name could come to differ."""
    modules: dict[str, list[str]] = {}
    for each in ours:
        for node in each.tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
                modules.setdefault(target.id.lstrip("_"), []).append(each.name)
    assert len(modules) > 20, "the constants are found"
    none(f"{name} is defined in {', '.join(where)}" for name, where in modules.items() if len(where) > 1)


MODULE_NAME = re.compile(
    rf"(?<![\w./-])(?:odradek\.(?:{'|'.join(PACKAGES)})|spark_jobs|tests\.[a-z]\w*)(?:\.(?!__)\w+)*(?![\w{{]|\.{{)"
)
"""A module in dots, in any text: a command, a log line, a table of modules; not the beginning of an f-string."""


def test_modules_that_a_text_names_are_there(ours: list[Source], tests: list[Source]) -> None:
    """An import that is stale fails by itself; a name in a string, a Makefile or a page fails when somebody uses it."""
    pages = [REPOSITORY / "Makefile", REPOSITORY / "pyproject.toml", REPOSITORY / "Dockerfile"]
    pages += [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")]
    texts = {each.name: each.text for each in ours + tests} | {path.name: path.read_text() for path in pages}
    named = {module: name for name, text in texts.items() for module in MODULE_NAME.findall(text)}
    assert len(named) > 500, "the names are found"
    none(f"{name} names {module}" for module, name in named.items() if not is_there(module))


def is_there(name: str) -> bool:
    """Whether it is a package or a module, or a name in one."""
    root, *parts = name.split(".")
    path = REPOSITORY if root == "odradek" else REPOSITORY / root
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    module = path / "__init__.py"
    if parts and (path / f"{parts[0]}.py").is_file():
        module = path / f"{parts.pop(0)}.py"
    return not parts or (module.is_file() and all(re.search(rf"\b{part}\b", module.read_text()) for part in parts))


FILE_NAME = re.compile(r"(?<![\w./{}$*-])(?:\w+/)+\w+\.py\b")
OTHER_FILES = ("tests/documentation/", "tests/support/strangers/", "tests/test_packaging.py")
"""Modules that name examples, the files of other projects, and those of an installed package."""


def test_files_that_a_module_names_are_there(ours: list[Source], tests: list[Source]) -> None:
    """By the end of their path, as in `log/log_append.py`, or by that of the installed module."""
    texts = {each.name: each.text for each in ours + tests if not each.name.startswith(OTHER_FILES)}
    named = {(file, name) for name, text in texts.items() for file in FILE_NAME.findall(text)}
    assert len(named) > 100, "the names are found"
    paths = (each.path.relative_to(REPOSITORY).parts for each in ours + tests)
    ends = {"/".join(parts[at:]) for parts in paths for at in range(len(parts))}
    none(f"{name} names {file}" for file, name in sorted(named) if file.removeprefix("odradek/") not in ends)


def test_modules_that_are_put_together_from_names_are_there() -> None:
    modules = [f"odradek.broker.tools.{module}" for module, _ in cli._TOOLS.values()]
    modules += [f"odradek.protocol.messages.{key.name.lower()}" for key in ApiKey if key in API]
    modules += [*HANDLERS.values(), *(f"tests.benchmarks.beside_apache.{name}" for name in BESIDE_APACHE)]
    modules += [f"tests.benchmarks.workloads.{module}" for module in GROUPS.values()]
    none(module for module in modules if not is_there(module))


def test_the_modules_of_the_compiled_build_are_there() -> None:
    """They are read and not imported: setup.py runs a build."""
    tree = ast.parse((REPOSITORY / "setup.py").read_text())
    assigned = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    compiled = ast.literal_eval(assigned["COMPILED"])
    assert list(compiled) == sorted(set(compiled)), "in order, each once"
    none(f"setup.py names {module}" for module in compiled if not exists(f"src/odradek/{module}.py"))
    # mypyc takes the inherited attribute for one of the class, and refuses to make that when the module is loaded
    modules = {f"odradek.{module.replace('/', '.')}" for module in compiled}
    none(
        f"{each} has a base with __slots__ that is not compiled"
        for module in modules
        for each in vars(import_module(module)).values()
        if isinstance(each, type) and each.__module__ == module
        for base in each.__mro__
        if base.__module__.startswith("odradek.") and base.__module__ not in modules and "__slots__" in vars(base)
    )
    # and a variable has one type: an error of another one, caught under the same name, is a TypeError
    none(
        f"{module}: errors of two types have one name in {function.name}"
        for module in compiled
        for function in ast.walk(ast.parse((REPOSITORY / "src" / "odradek" / f"{module}.py").read_text()))
        if isinstance(function, ast.FunctionDef)
        for types in named_errors(function).values()
        if len(types) > 1
    )
    # nor can a class of a module that is not compiled have one that is as its base
    none(
        f"{each} is not compiled, but its base is"
        for name, module in package_modules()
        if name not in modules
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == name
        if any(base.__module__ in modules for base in each.__bases__)
    )


def package_modules() -> Iterator[tuple[str, ModuleType]]:
    """Those that need no package which only some users install; not the kit for tests."""
    for found in walk_packages(odradek.__path__, "odradek."):
        if not found.name.startswith("odradek.testing."):
            try:
                module = import_module(found.name)
            except ModuleNotFoundError:
                continue
            yield found.name, module


def named_errors(function: ast.FunctionDef) -> dict[str, set[str]]:
    """The types of the errors that it catches, by the name that they get."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
            found.setdefault(node.name, set()).add(ast.unparse(node.type))
    return found


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
