"""Loading a class by its import path: what is loaded, and what each error tells the operator."""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from odradek.broker.config.python_class import new_instance
from odradek.broker.machine.startup_error import StartupError

KEY = "create.topic.policy.class.name"

MODULE = """
class Good:
    def configure(self, configs):
        self.configs = configs
    def greet(self):
        return "hello " + self.configs["name"]
    class Nested:
        def configure(self, configs): ...
        def greet(self):
            return "nested"

class Silent:
    def configure(self, configs): ...
    greet = "not a method"

class Broken(Good):
    def __init__(self):
        raise OSError("no licence")

class Picky(Good):
    def configure(self, configs):
        raise ValueError("limit is missing")

class Waiting(Good):
    async def greet(self): ...

def function(): ...
"""


class Greeter(Protocol):
    @abstractmethod
    def configure(self, configs: Mapping[str, str], /) -> None: ...

    def greet(self) -> str: ...


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = tmp_path / "greeting_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "greeters.py").write_text(MODULE)
    (package / "needy.py").write_text("import module_that_nobody_has\n")
    (package / "wrong.py").write_text("class Unfinished(\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("greeting_package")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("path", "greeting"),
    [
        ("greeting_package.greeters:Good", "hello Odradek"),
        ("greeting_package.greeters.Good", "hello Odradek"),
        ("greeting_package.greeters:Good.Nested", "nested"),
    ],
)
def test_a_class_is_loaded_by_its_path_and_gets_the_settings(path: str, greeting: str) -> None:
    assert new_instance(KEY, path, Greeter, {"name": "Odradek"}).greet() == greeting


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (
            "org.example.Policy",
            "there is no module org; install it for the broker's Python, or put its directory in PYTHONPATH",
        ),
        ("greeting_package.nothing:Good", "there is no module greeting_package.nothing; install it"),
        ("greeting_package.greeters:Nobody", "the module greeting_package.greeters has no Nobody"),
        ("greeting_package.greeters:function", "function is not a class"),
        ("greeting_package.greeters:Silent", "the class has no method greet; "),
        ("greeting_package.greeters:Waiting", "the method greet is async; the broker calls it without await"),
        ("greeting_package.greeters:Broken", "the object cannot be made: OSError: no licence"),
        ("greeting_package.greeters:Picky", "the object cannot be made: ValueError: limit is missing"),
        ("greeting_package.needy:Good", "imports module_that_nobody_has, which is not installed"),
        ("greeting_package.wrong:Good", "cannot be imported: SyntaxError"),
        ("no path", "expected the import path of a Python class, such as package.module:Class"),
    ],
)
def test_an_error_says_what_to_do(path: str, reason: str) -> None:
    with pytest.raises(StartupError, match=f"^{KEY}={re.escape(path)}: .*{re.escape(reason)}"):
        new_instance(KEY, path, Greeter, {"name": "Odradek"})
