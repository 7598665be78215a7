"""Decisions of `AclAuthorizer` beside those of Apache Kafka's AclAuthorizer, on random ACLs. No broker runs."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from random import Random

from odradek.controller.model.acls import AccessControlEntry, AclBinding, ResourcePattern
from tests.support.acls.acl_model import Case, answers_of, change_one, random_case
from tests.support.acls.authorizers import brokers
from tests.support.processes.apache.jvm import program_command

PROGRAM = Path(__file__).parents[2] / "support" / "jvm" / "AclOracle.java"
CASES = 5_000
CASES_OF_ONE_STATE = 20


async def decisions(random: Random) -> tuple[list[str], list[str]]:
    """Lines for Apache's authorizer, and our answers."""
    bindings = set[AclBinding]()
    lines, answers, asked = [], list[str](), 0
    async with brokers() as cluster:
        authorizer = await cluster.start()
        while asked < CASES:
            lines.append(set_line(*await change_one(random, authorizer, bindings)))
            for _ in range(CASES_OF_ONE_STATE):
                case = random_case(random)
                lines.append(ask_line(case))
                allowed, some = answers_of(authorizer, case)
                answers.append(" ".join(str(int(each)) for each in (*allowed, some)))
                asked += len(case.questions)
    return lines, answers


def ask_line(case: Case) -> str:
    asked = [word for _, _, operation, kind, name in case.questions for word in (operation.name, kind.name, name)]
    settings = (";".join(case.super_users), str(int(case.by_default)))
    return "\t".join(("ask", *settings, case.questions[0].principal, case.asked_host, *asked))


def set_line(pattern: ResourcePattern, entries: frozenset[AccessControlEntry]) -> str:
    words = [
        word
        for entry in entries
        for word in (entry.principal, entry.host, entry.operation.name, entry.permission_type.name)
    ]
    return "\t".join(("set", pattern.resource_type.name, pattern.pattern_type.name, pattern.name, *words))


def test_decisions_are_those_of_apache_kafka() -> None:
    lines, answers = asyncio.run(decisions(Random(3)))
    command = program_command(PROGRAM)
    data = "\n".join(lines).encode()
    finished = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    theirs = finished.stdout.decode().splitlines()
    assert len(theirs) == len(answers)
    assert sum(len(answer.split()) - 1 for answer in answers) >= CASES
    asked = [line for line in lines if line.startswith("ask")]
    assert [case for case in zip(asked, answers, theirs, strict=True) if case[1] != case[2]] == []
    assert {"0 0", "0 1", "1 0", "1 1", "0 1 0", "1 1 1 1"} < set(theirs)
