"""The authorizer with 10,000 ACLs: one decision, the load at the start, and pauses while all of them change.

    python -m tests.benchmarks.parts.bench_acls [--acls N]

Half of the ACLs are literal, half prefixed with four lengths of prefixes, for 100 users. A decision is a call of
`AclAuthorizer.authorize` with one action; that of the cache alone is beside it. The audit log is at INFO, where each
denial is a line, and then at DEBUG, where each decision is; the log goes to `/dev/null`. The metadata is in an embedded
tree on the disk. Changes: one session creates all ACLs and deletes them again, in one request each; a second session on
the same event loop follows. A pause is the time between two turns of the loop; the longest one is printed, and the
processor time of the loop's thread in it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import TypeAlias

from odradek.broker.daemon import GC_THRESHOLDS
from odradek.broker.machine.log_setup import AUTHORIZER_LOGGER, configure_logging
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext
from odradek.controller.model.acls import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.timer.clock import SystemClock
from odradek.timer.system_timer import SystemTimer

TOPIC = ResourceType.TOPIC
READ = AclOperation.READ
DECISIONS = 200_000
WATCH_S = 0.001
Question: TypeAlias = tuple[AuthorizableRequestContext, list[Action]]
ALL = AclBindingFilter(
    ResourcePatternFilter(TOPIC, None, PatternType.ANY),
    AccessControlEntryFilter(None, None, AclOperation.ANY, AclPermissionType.ANY),
)


def name_of(number: int) -> str:
    return f"team{number % 97:02}.orders{number:05}"


def bindings(count: int) -> list[AclBinding]:
    found = []
    for number in range(count):
        pattern = ResourcePattern(TOPIC, name_of(number), PatternType.LITERAL)
        if number % 2:
            pattern = ResourcePattern(TOPIC, name_of(number) + "-x" * (number % 4), PatternType.PREFIXED)
        entry = AccessControlEntry(f"User:u{number % 100}", "*", READ, AclPermissionType.ALLOW)
        found.append(AclBinding(pattern, entry))
    return found


def client_of(number: int) -> AuthorizableRequestContext:
    user, protocol = f"User:u{number}", SecurityProtocol.PLAINTEXT
    return AuthorizableRequestContext(user, "10.0.0.1", "PLAINTEXT", protocol, 1, 12, "client", number)


class Pauses:
    """The longest time between two turns of the loop while the block runs."""

    async def __aenter__(self) -> Pauses:
        self.longest_s = self.cpu_s = 0.0
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()

    async def _watch(self) -> None:
        last, last_cpu = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(WATCH_S)
            now, cpu = time.perf_counter(), time.thread_time()
            if now - last > self.longest_s:
                self.longest_s = now - last
            self.cpu_s = max(self.cpu_s, cpu - last_cpu)
            last, last_cpu = now, cpu

    def __str__(self) -> str:
        return f"longest pause {self.longest_s * 1000:.1f} ms, longest computation {self.cpu_s * 1000:.1f} ms"


async def changes(database: TreeDatabase, all_of_them: list[AclBinding]) -> None:
    clock = SystemClock()
    timer = SystemTimer(clock)

    async def authorizer() -> AclAuthorizer:
        made = AclAuthorizer(MetadataClient(await database.connect()), clock, timer, lambda n: 0)
        started, cpu, of_all = time.perf_counter(), time.thread_time(), time.process_time()
        await made.start()
        took, used = time.perf_counter() - started, time.thread_time() - cpu
        of_all = time.process_time() - of_all
        print(
            f"start with {made.acl_count} ACLs: {took:.3f} s; processor time {of_all:.3f} s, {used:.3f} s on the loop"
        )
        return made

    one, other = await authorizer(), await authorizer()
    ctx = client_of(1)
    async with Pauses() as pauses:
        started = time.perf_counter()
        results = await one.create_acls(ctx, all_of_them)
        assert not any(result.error for result in results)
        created = time.perf_counter() - started
        while other.acl_count != len(all_of_them):
            await asyncio.sleep(WATCH_S)
    print(f"created in {created:.2f} s, on the other after {time.perf_counter() - started:.2f} s; {pauses}")
    async with Pauses() as pauses:
        loaded = await authorizer()
    print(f"the load: {pauses}")
    decide(loaded)
    async with Pauses() as pauses:
        started = time.perf_counter()
        await one.delete_acls(ctx, [ALL])
        deleted = time.perf_counter() - started
        while other.acl_count:
            await asyncio.sleep(WATCH_S)
    print(f"deleted in {deleted:.2f} s, on the other after {time.perf_counter() - started:.2f} s; {pauses}")
    for each in (one, other, loaded):
        each.close()
    await asyncio.sleep(0)


def decide(authorizer: AclAuthorizer) -> None:
    clients = [client_of(number) for number in range(100)]
    allowed = [(clients[n % 100], [Action(READ, TOPIC, name_of(n))]) for n in range(0, 10_000, 2)]
    denied = [(clients[(n + 1) % 100], [Action(READ, TOPIC, name_of(n))]) for n in range(0, 20_000, 2)]
    cache = authorizer._cache

    def of_cache(ctx: AuthorizableRequestContext, actions: list[Action]) -> None:
        cache.is_allowed(ctx.principal, ctx.client_host, READ, TOPIC, actions[0].resource_name)

    def cost_us(answer: Callable[[AuthorizableRequestContext, list[Action]], object], questions: list[Question]) -> str:
        rounds = DECISIONS // len(questions)
        started = time.process_time()
        for _ in range(rounds):
            for ctx, actions in questions:
                answer(ctx, actions)
        return f"{(time.process_time() - started) / (rounds * len(questions)) * 1e6:.2f} us"

    at_info = [cost_us(authorizer.authorize, questions) for questions in (allowed, denied)]
    logging.getLogger(AUTHORIZER_LOGGER).setLevel(logging.DEBUG)
    at_debug = [cost_us(authorizer.authorize, questions) for questions in (allowed, denied)]
    logging.getLogger(AUTHORIZER_LOGGER).setLevel(logging.INFO)
    print(f"a decision of the cache alone: {cost_us(of_cache, allowed)}, {cost_us(of_cache, denied)} if it denies")
    print(f"a decision: {at_info[0]}, {at_info[1]} with the line of a denial in the audit log")
    print(f"a decision with all its lines, the audit log at DEBUG: {at_debug[0]}, a denial {at_debug[1]}")


async def measure(count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        database = await TreeDatabase.open(str(Path(directory) / "tree.db"), SystemClock(), lambda error: None)
        try:
            await changes(database, bindings(count))
        finally:
            await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acls", type=int, default=10_000)
    gc.set_threshold(*GC_THRESHOLDS)  # as the daemon does
    gc.freeze()
    count = parser.parse_args().acls
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
        configure_logging()
        asyncio.run(measure(count))


if __name__ == "__main__":
    main()
