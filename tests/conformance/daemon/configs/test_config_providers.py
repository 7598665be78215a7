"""Config providers: Apache Kafka and Odradek make the same of the same variables, and a broker starts with them."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.broker.config.config_providers import resolve_variables
from odradek.storage.config.config_def import ConfigError
from tests.support.broker import FAST_SETTINGS
from tests.support.processes.apache.jvm import program_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.unit.broker.config.test_config_providers import CLASSES, PROVIDERS

PROGRAM = Path(__file__).parents[3] / "support" / "jvm" / "ConfigProviderOracle.java"
CANARY = "canary-7351-of-a-provider"


def word(text: str) -> str:
    return b64encode(text.encode()).decode()


def apache(cases: list[dict[str, str]]) -> list[str]:
    lines = [" ".join(word(text) for pair in case.items() for text in pair) for case in cases]
    command = program_command(PROGRAM)
    finished = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    return [b64decode(answer).decode() for answer in finished.stdout.decode().splitlines()]


def ours(case: Mapping[str, str]) -> str:
    try:
        return f"= {resolve_variables(case)[0]['key']}"
    except ConfigError as error:
        return f"! {error}"


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.properties").write_text("one=1\ntwo = two words \\\n  and more\nthree:${env:ODRADEK_TEST}\nü=ö\n")
    (tmp_path / "bad.properties").write_bytes(b"one=\xff\n")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "one").write_bytes(b"\n text\r\n\xff \n")
    (tmp_path / "mounted" / "two").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mounted")
    monkeypatch.setenv("ODRADEK_TEST", "value")
    return tmp_path


def cases(directory: Path) -> list[dict[str, str]]:
    """Texts of all providers, places and keys, the same with parameters, and random rubbish."""
    rng = random.Random(5)
    places = ["", "a.properties", "bad.properties", "none", "mounted", "link", "mounted/../link", "./mounted"]
    paths = ["", *(f"{directory}/{place}:" for place in places), "mounted:", ":"]
    keys = ["one", "two", "three", "ü", "ODRADEK_TEST", "missing", "", "one:two"]
    names = [*CLASSES, "other", ""]
    texts = [f"${{{name}:{path}{key}}}" for name, path, key in itertools.product(names, paths, keys)]
    texts += [
        "".join(rng.choices(["${", "}", ":", "$", "{", "env", "ODRADEK_TEST", "x", "\n"], k=12)) for _ in range(500)
    ]
    texts += [f"<{a}{b}>" for a, b in zip(texts, rng.sample(texts, len(texts)), strict=True)]
    parameters: list[dict[str, str]] = [
        {},
        {"config.providers.file.param.allowed.paths": f"{directory}/a.properties"},
        {"config.providers.directory.param.allowed.paths": f"{directory}/mounted,{directory}/./link"},
        {"config.providers.env.param.allowlist.pattern": "ODRADEK"},
        {"config.providers.env.param.allowlist.pattern": "ODRADEK.*|PATH"},
        {"config.providers": "file,,env "},
    ]
    found = [{**PROVIDERS, "key": text} for text in texts]
    found += [{**PROVIDERS, **more, "key": text} for more in parameters for text in rng.sample(texts, 100)]
    for refused in ("relative", "/not/there", f"{directory},"):
        found.append({**PROVIDERS, "config.providers.file.param.allowed.paths": refused, "key": "x"})
    for path in ("org.apache.kafka.Nothing", " "):
        found.append({"config.providers": "a", "config.providers.a.class": path, "key": "x"})
    return found


def is_same(text: str, expected: str, answer: str) -> bool:
    """Of two variables that cannot be read, Java's hash map decides which one the message names."""
    if text.startswith("<") and expected.startswith("!"):
        return answer.startswith("!")
    return answer == expected


def test_apache_resolves_the_same(secrets: Path) -> None:
    asked = cases(secrets)
    theirs = apache(asked)
    different = [
        (case["key"], expected, ours(case))
        for case, expected in zip(asked, theirs, strict=True)
        if not is_same(case["key"], expected, ours(case))
    ]
    assert not different, (len(different), different[:5])
    assert len({answer[0] for answer in theirs}) == 2, "both answers and refusals"


def test_a_broker_starts_with_them_and_shows_no_secret(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"secret={CANARY}\ndata={tmp_path / 'elsewhere'}\n")
    settings = {
        **FAST_SETTINGS,
        "config.providers": "file",
        "config.providers.file.class": CLASSES["file"],
        "config.providers.file.param.allowed.paths": str(tmp_path),
        "password.encoder.secret": f"${{file:{secrets}:secret}}",
        "log.dirs": f"${{file:{secrets}:data}}",
    }
    broker = OdradekBroker(tmp_path / "broker", settings)
    broker.start()
    try:
        assert os.path.exists(tmp_path / "elsewhere" / "meta.properties")
        broker.stop()
        assert CANARY not in broker.log_text()
        assert "is not known" not in broker.log_text()
    finally:
        broker.close()
