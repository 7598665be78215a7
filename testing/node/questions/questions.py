"""Questions: what the facades ask of a broker that runs elsewhere, in a thread or in another process.

A question is a function `async def name(broker: RunningBroker, **arguments) -> value`. It runs on the event loop of the
broker. Arguments, value and errors can be pickled, because a broker may have a process of its own.

`@question` registers a function under its name. The module of a question is imported by the facade that asks it; a
process imports it when it gets its first question of that module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

QuestionFunction: TypeAlias = "Callable[..., Awaitable[object]]"

QuestionT = TypeVar("QuestionT", bound="Callable[..., Awaitable[object]]")

QUESTIONS: Final[dict[str, QuestionFunction]] = {}
"""The registered functions by name."""


def question(function: QuestionT) -> QuestionT:
    """Register a question. Raises: ValueError if another function has its name."""
    name = function.__name__
    present = QUESTIONS.setdefault(name, function)
    if present is not function and present.__module__ != function.__module__:
        raise ValueError(f"{name} is a question of {present.__module__} already")
    QUESTIONS[name] = function
    return function


def find(name: str, module: str | None = None) -> QuestionFunction:
    """The function of a question, from `module` if it is not registered yet. Raises: KeyError."""
    if name not in QUESTIONS and module is not None:
        import_module(module)
    try:
        return QUESTIONS[name]
    except KeyError:
        raise KeyError(f"{name} is not a question; {', '.join(sorted(QUESTIONS))} are") from None
