"""Loads a class that the configuration file names by its Python import path, and makes the one object of it.

The path is `package.module:Class` or `package.module.Class`. The module must be importable by the broker's interpreter:
installed into its environment, or in a directory of PYTHONPATH. Importing a module runs its code in the broker, so that
a path may come from the configuration file, the environment or the command line only. AlterConfigs refuses it, also
for `principal.builder.class`, the one key that is not read-only.

Kafka: AbstractConfig.getConfiguredInstance.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from odradek.broker.config.keys.validators import split_class_path
from odradek.broker.machine.startup_error import StartupError

if TYPE_CHECKING:
    from types import ModuleType


class Configurable(Protocol):
    """Kafka: Configurable."""

    def configure(self, configs: Mapping[str, str], /) -> None: ...


ConfigurableT = TypeVar("ConfigurableT", bound=Configurable)
InstanceT = TypeVar("InstanceT")


def new_instance(
    key: str, path: str, protocol: Callable[..., ConfigurableT], configs: Mapping[str, str]
) -> ConfigurableT:
    """An object of the class that `key` names, after its `configure(configs)` has returned.

    `protocol` is a Protocol class; the loaded class must have all its public methods. `configs` are the texts of the
    broker's settings by key. Raises: StartupError.
    """
    return configured_instance(key, path, protocol, lambda instance: instance.configure(dict(configs)))


def configured_instance(
    key: str,
    path: str,
    protocol: Callable[..., InstanceT],
    configure: Callable[[InstanceT], None],
    *,
    sync_or_async: Collection[str] = (),
) -> InstanceT:
    """As `new_instance`, with another call of the object's `configure`.

    `sync_or_async`: methods that may be async or not. Raises: StartupError.
    """
    loaded = _load(key, path)
    missing = sorted(name for name in _methods(protocol) if not callable(getattr(loaded, name, None)))
    if missing:
        raise _error(
            key,
            path,
            f"the class has no method {', '.join(missing)}; {protocol.__module__}.{protocol.__name__} has all",
        )
    for name in sorted(_methods(protocol).difference(sync_or_async)):
        is_async = iscoroutinefunction(getattr(loaded, name))
        if is_async and not iscoroutinefunction(getattr(protocol, name)):
            raise _error(key, path, f"the method {name} is async; the broker calls it without await")
        if iscoroutinefunction(getattr(protocol, name)) and not is_async:
            raise _error(key, path, f"the method {name} is not async; the broker awaits it")
    try:
        instance = cast("InstanceT", loaded())
        configure(instance)
    except Exception as error:
        raise _error(key, path, f"the object cannot be made: {_shown(error)}") from error
    return instance


def _load(key: str, path: str) -> type[object]:
    parts = split_class_path(path)
    if parts is None:
        raise _error(key, path, "expected the import path of a Python class, such as package.module:Class")
    module_name, class_name = parts
    found: object = _import(key, path, module_name)
    for name in class_name.split("."):
        if not hasattr(found, name):
            raise _error(key, path, f"the module {module_name} has no {class_name}")
        found = getattr(found, name)
    if not isinstance(found, type):
        raise _error(key, path, f"{class_name} is not a class")
    return found


def _import(key: str, path: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _error(key, path, f"the module {module_name} imports {error.name}, which is not installed") from error
        raise _error(
            key,
            path,
            f"there is no module {error.name}; install it for the broker's Python, or put its directory in PYTHONPATH",
        ) from error
    except Exception as error:
        raise _error(key, path, f"the module {module_name} cannot be imported: {_shown(error)}") from error


def place_of(error: Exception) -> str:
    """The type of an exception and the line that raised it, without its text, which may have a secret."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" in {trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
    return f"{type(error).__name__}{place}"


def _methods(protocol: Callable[..., object]) -> set[str]:
    return {name for name, member in vars(protocol).items() if not name.startswith("_") and callable(member)}


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _error(key: str, path: str, reason: str) -> StartupError:
    return StartupError(f"{key}={path}: {reason}.")
