"""Decisions of `AclCache` beside those of Apache Kafka's AclAuthorizer, on random ACLs. No broker runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

from odradek.broker.security.authorizer.acl_cache import AclCache
from odradek.broker.security.authorizer.client_host import java_host
from odradek.controller.model.acls import AccessControlEntry, AclBinding, ResourcePattern
from tests.support.acls.acl_model import change_one, random_question
from tests.support.processes.apache.jvm import QUICK_START, java_executable, libs_dir

PROGRAM = Path(__file__).parents[2] / "support" / "jvm" / "AclOracle.java"
CASES = 5_000
CASES_OF_ONE_STATE = 10


def decisions(random: Random) -> tuple[list[str], list[str]]:
    """Lines for Apache's authorizer, and our answers."""
    cache, bindings = AclCache(), set[AclBinding]()
    lines, answers = [], []
    for _ in range(CASES // CASES_OF_ONE_STATE):
        lines.append(set_line(*change_one(random, cache, bindings)))
        for _ in range(CASES_OF_ONE_STATE):
            asked, everyone = random_question(random), random.random() < 0.5
            host = java_host(asked.host)
            found = cache.is_allowed(asked.principal, host, *asked[2:])
            some = cache.is_allowed_for_some(asked.principal, host, *asked[2:4], by_default=everyone)
            answers.append(f"{int(everyone if found is None else found)} {int(some)}")
            words = (asked.principal, asked.host, asked.operation.name, asked.resource_type.name, asked.name)
            lines.append("\t".join(("ask", *words, str(int(everyone)))))
    return lines, answers


def set_line(pattern: ResourcePattern, entries: frozenset[AccessControlEntry]) -> str:
    words = [
        word
        for entry in entries
        for word in (entry.principal, entry.host, entry.operation.name, entry.permission_type.name)
    ]
    return "\t".join(("set", pattern.resource_type.name, pattern.pattern_type.name, pattern.name, *words))


def test_decisions_are_those_of_apache_kafka() -> None:
    lines, answers = decisions(Random(3))
    command = [java_executable(), *QUICK_START, "-cp", f"{libs_dir()}/*", str(PROGRAM)]
    data = "\n".join(lines).encode()
    finished = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    theirs = finished.stdout.decode().splitlines()
    assert len(theirs) == len(answers) == CASES
    asked = [line for line in lines if line.startswith("ask")]
    assert [case for case in zip(asked, answers, theirs, strict=True) if case[1] != case[2]] == []
    assert set(theirs) == {"0 0", "0 1", "1 0", "1 1"}
