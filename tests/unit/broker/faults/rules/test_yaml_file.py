from __future__ import annotations

import sys
from pathlib import Path

import pytest

from odradek.broker.faults.rules.rules import Delay, Drop
from odradek.broker.faults.rules.yaml_file import MAX_FILE_BYTES, read_rules, rules_of
from odradek.broker.machine.startup_error import StartupError

FILE = """
faults:
  - action: drop          # the first Produce is lost
    api: [Produce]
    nth: 1
  - {action: delay, ms: 1.5s, versions: 4-12, enabled: false}
"""


def test_rules_come_in_the_order_of_the_file() -> None:
    first, second = rules_of(FILE, "f")
    assert first.action == Drop()
    assert first.match.nth == 1
    assert (second.action, second.is_enabled) == (Delay(ms=1_500), False)
    assert rules_of("faults: []", "f") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f: the file is empty"),
        ("- a", "f:1: the file needs the key faults"),
        ("{}", "f:1: the file needs the key faults"),
        ("fault:\n  - action: drop", "f:1: fault: is no key here; there is only faults"),
        ("faults: {}", "f:1: faults: is no list of rules"),
        ("faults:\n  - drop", "f:2: a rule has keys and values"),
        ("faults:\n  - action: drop\n    action: drop", "f:3: action: is there twice"),
        ("faults:\n  - action: drop\n\n    topik: t", "f:4: topik: is no key of drop"),
        ("faults:\n  - api: Fetch", "f:2: action: is missing"),
        ("faults:\n  - action: error\n    code: TYPO", "f:3: code: 'TYPO' is no error code"),
        ("faults:\n  - action: drop\n  bad", "f:3: could not find expected ':'"),
        ("faults:\n  - action: !!python/object/apply:os.system [ls]", "f:2: could not determine a constructor"),
        ("faults:\n  - action: &a [*a]", "f:2: action: "),
        ("faults: \x01", "special characters are not allowed"),
        ("faults:\n" + "  - " + "[" * 5_000, ""),
        ("faults:\n  - ? [a]\n    : b", "f:2: a key is a word"),
    ],
)
def test_errors_name_the_line_and_the_key(text: str, said: str) -> None:
    with pytest.raises(StartupError) as refused:
        rules_of(text, "f")
    assert said in str(refused.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="No such file"):
        read_rules(str(tmp_path / "none"))
    large = tmp_path / "large"
    large.write_text("#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(StartupError, match="is larger than"):
        read_rules(str(large))
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(StartupError, match="can't decode"):
        read_rules(str(binary))


def test_without_pyyaml_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(StartupError, match=r"pip install 'odradek\[faults\]'"):
        rules_of(FILE, "f")
