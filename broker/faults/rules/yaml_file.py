"""Rules from a YAML file, for `odradek serve --faults FILE`.

    faults:
      - action: not_leader
        topic: orders
        times: 2

Errors name the line and the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.faults.rules.rule_texts import RuleError, rule_of
from odradek.broker.machine.startup_error import StartupError

if TYPE_CHECKING:
    from yaml import Node

    from odradek.broker.faults.rules.rules import Rule

MAX_FILE_BYTES: Final = 1024 * 1024


def read_rules(path: str) -> list[Rule]:
    """The rules in the file. Raises: StartupError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"--faults {path}: {error}") from error
    if len(text) > MAX_FILE_BYTES:
        raise StartupError(f"--faults {path}: the file is larger than {MAX_FILE_BYTES} characters")
    return rules_of(text, path)


def rules_of(text: str, path: str) -> list[Rule]:
    """Raises: StartupError, with the line of `path`."""
    try:
        import yaml
    except ImportError:
        raise StartupError("--faults needs PyYAML: pip install 'odradek[faults]'") from None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise StartupError(f"{path}: the file is empty; it needs the key faults with a list of rules")
        return [_rule(loader, item, path) for item in _items(root, path)]
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise StartupError(f"{path}:{line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise StartupError(f"{path}: {error}") from None


def _items(root: Node, path: str) -> list[Node]:
    """The nodes of the list under `faults`."""
    import yaml

    if not isinstance(root, yaml.MappingNode):
        raise StartupError(f"{path}:1: the file needs the key faults with a list of rules")
    found: list[Node] | None = None
    for key, value in root.value:
        if key.value != "faults":
            raise StartupError(f"{_at(path, key)}: {key.value}: is no key here; there is only faults")
        if not isinstance(value, yaml.SequenceNode):
            raise StartupError(f"{_at(path, value)}: faults: is no list of rules")
        found = value.value
    if found is None:
        raise StartupError(f"{path}:1: the file needs the key faults with a list of rules")
    return found


def _rule(loader: object, node: Node, path: str) -> Rule:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise StartupError(f"{_at(path, node)}: a rule has keys and values, as in `action: drop`")
    assert isinstance(loader, yaml.SafeLoader)
    lines: dict[str, Node] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise StartupError(f"{_at(path, key)}: a key is a word")
        if key.value in lines:
            raise StartupError(f"{_at(path, key)}: {key.value}: is there twice")
        lines[key.value] = key
    try:
        return rule_of(loader.construct_document(node))
    except RuleError as error:
        raise StartupError(f"{_at(path, lines.get(error.key, node))}: {error}") from None


def _at(path: str, node: Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
