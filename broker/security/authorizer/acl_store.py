"""Reads and writes the znodes of ACLs, and keeps an `AclCache` equal to them.

A change replaces the whole node of a pattern, in the version that was read. If another broker or a tool has changed the
node meanwhile, it is read and changed again. After each change a notification has all brokers read the node.

Kafka: AclAuthorizer.updateResourceAcls, AclAuthorizer.loadAllAcls, AclAuthorizer.processAclChangeNotification,
KafkaZkClient.createAclChangeNotification.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.machine.timed_waits import pause
from odradek.broker.security.authorizer.acl_cache import NO_ACLS, VersionedAcls
from odradek.controller.loop_turns import in_turns, result_in_turns
from odradek.controller.model.acls import AccessControlEntry, ResourcePattern
from odradek.controller.tree.metadata_tree import (
    UNANSWERED,
    BadVersion,
    Create,
    CreateMode,
    Delete,
    GetData,
    NodeExists,
    NoNode,
    Operation,
    SetData,
    Stat,
    TreeError,
)
from odradek.controller.znodes import acl_nodes
from odradek.controller.znodes.metadata_client import submit_all
from odradek.controller.znodes.znode_json import BadZnode

if TYPE_CHECKING:
    from odradek.broker.security.authorizer.acl_cache import AclCache
    from odradek.controller.tree.metadata_tree import DataAndStat
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

NODES_AT_ONCE: Final = 500
"""Nodes that are read or written in one batch."""

NODES_A_TURN: Final = 16
"""Nodes that are decoded before the event loop gets a turn; one with 1,000 entries takes 3 ms."""

MAX_UPDATE_RETRIES: Final = 10
RETRY_BACKOFF_MS: Final = 100
RETRY_BACKOFF_JITTER_MS: Final = 50

Entries: TypeAlias = frozenset[AccessControlEntry]
Errors: TypeAlias = dict[ResourcePattern, Exception]
ChangeSteps: TypeAlias = Generator[None, None, Entries]
Change: TypeAlias = Callable[[Entries], ChangeSteps]
"""The new entries of a pattern, from those that are stored, in steps. Raises: ValueError."""


class AclStore:
    """See the module. Updates and refreshes wait for each other, so the cache never goes back to older entries.

    `random_below`: a random number from 0 up to its argument.
    """

    def __init__(
        self, client: MetadataClient, cache: AclCache, timer: SystemTimer, random_below: Callable[[int], int]
    ) -> None:
        self._client = client
        self._tree = client.tree
        self._cache = cache
        self._timer = timer
        self._random_below = random_below
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Read all ACLs. Raises: BadZnode, TreeError."""
        patterns = set()
        for pattern_type, path in acl_nodes.STORES.items():
            for kind in await self._client.children(path):
                resource_type = acl_nodes.resource_type_of(kind)
                if not resource_type:
                    logger.warning("Ignoring unknown ResourceType: %s", kind)
                    continue
                names = await self._client.children(acl_nodes.type_path(resource_type, pattern_type))
                async for name in in_turns(names):
                    patterns.add(ResourcePattern(resource_type, name, pattern_type))
        async for pattern in in_turns(self._cache.patterns()):
            patterns.add(pattern)
        await self.refresh(patterns)

    async def refresh(self, patterns: Iterable[ResourcePattern]) -> None:
        """Read the ACLs of some patterns, all that can be read.

        Raises: TreeError if a node was not read, which may be tried again; else BadZnode for a node that is malformed
        or may not be read.
        """
        wanted = list(patterns)
        errors: list[Exception] = []
        for start in range(0, len(wanted), NODES_AT_ONCE):
            async with self._lock:
                found = await self._read(wanted[start : start + NODES_AT_ONCE])
                async for pattern, acls in in_turns(found.items(), NODES_A_TURN):
                    if isinstance(acls, Exception):
                        errors.append(acls)
                    else:
                        self._cache.update(pattern, acls)
        if errors:
            raise next((error for error in errors if isinstance(error, TreeError)), errors[0])

    async def update(self, changes: Mapping[ResourcePattern, Change]) -> Errors:
        """Change the entries of patterns; the errors of those that could not be changed."""
        errors: Errors = {}
        wanted = list(changes)
        async with self._lock:
            for start in range(0, len(wanted), NODES_AT_ONCE):
                some = {pattern: changes[pattern] for pattern in wanted[start : start + NODES_AT_ONCE]}
                try:
                    await self._update(some, errors)
                except TreeError as error:
                    errors.update(dict.fromkeys(wanted[start:], error))
                    break
        if errors:
            logger.error("The ACLs of %d resources could not be changed: %r", len(errors), next(iter(errors.values())))
        return errors

    async def _update(self, changes: Mapping[ResourcePattern, Change], errors: Errors) -> None:
        known = {pattern: self._cache.get(pattern) for pattern in changes}
        current: dict[ResourcePattern, VersionedAcls | Exception]
        current = {pattern: acls for pattern, acls in known.items() if acls is not None}
        current |= await self._read([pattern for pattern, acls in known.items() if acls is None])
        refused = await self._write(current, changes, errors, is_retry=False)
        retries = 0
        while refused and retries < MAX_UPDATE_RETRIES:
            await self.back_off()
            refused = await self._write(await self._read(refused), changes, errors, is_retry=True)
            retries += 1
        for pattern in refused:
            message = f"Failed to update ACLs for {pattern} after trying a maximum of {MAX_UPDATE_RETRIES} times"
            errors[pattern] = RuntimeError(message)

    async def back_off(self) -> None:
        """Wait before the next attempt."""
        await pause(self._timer, RETRY_BACKOFF_MS + self._random_below(RETRY_BACKOFF_JITTER_MS))

    async def _write(
        self,
        current: Mapping[ResourcePattern, VersionedAcls | Exception],
        changes: Mapping[ResourcePattern, Change],
        errors: Errors,
        *,
        is_retry: bool,
    ) -> list[ResourcePattern]:
        """Write each node in the version that was read; the patterns of which another version is stored by now."""
        wanted: dict[ResourcePattern, tuple[VersionedAcls, Entries]] = {}
        async for pattern, acls in in_turns(current.items(), NODES_A_TURN):
            try:
                if isinstance(acls, Exception):
                    raise acls
                wanted[pattern] = acls, await result_in_turns(changes[pattern](acls.entries))
            except (BadZnode, TreeError, ValueError) as error:
                errors[pattern] = error
        operations = {
            pattern: _write_of(pattern, acls, entries)
            async for pattern, (acls, entries) in in_turns(wanted.items(), NODES_A_TURN)
            if acls.exists or entries
        }
        answers = dict(zip(operations, await submit_all(self._tree, list(operations.values())), strict=True))
        refused, changed = [], []
        async for pattern, (acls, entries) in in_turns(wanted.items(), NODES_A_TURN):
            answer = answers.get(pattern)
            if isinstance(answer, BadVersion | NodeExists) or (isinstance(answer, NoNode) and entries and acls.exists):
                refused.append(pattern)
            elif isinstance(answer, TreeError) and not (isinstance(answer, NoNode) and not entries):
                errors[pattern] = answer
            else:
                version = answer.version if isinstance(answer, Stat) else 0
                self._cache.update(pattern, VersionedAcls(entries, version))
                if entries != acls.entries:
                    logger.info("Updated ACLs for %s with new version %d", pattern, version)
                if entries != acls.entries or is_retry:
                    # After a lost connection, the retry finds what the first attempt has written.
                    changed.append(pattern)
        await self._notify(changed, errors)
        return refused

    async def _notify(self, changed: list[ResourcePattern], errors: Errors) -> None:
        creations = [
            Create(acl_nodes.change_path(pattern), acl_nodes.encode_change(pattern), CreateMode.PERSISTENT_SEQUENTIAL)
            for pattern in changed
        ]
        answers = zip(changed, await submit_all(self._tree, creations), strict=True)
        errors.update((pattern, answer) for pattern, answer in answers if isinstance(answer, TreeError))

    async def _read(self, patterns: list[ResourcePattern]) -> dict[ResourcePattern, VersionedAcls | Exception]:
        operations: list[Operation[DataAndStat]] = [GetData(acl_nodes.acl_path(pattern)) for pattern in patterns]
        answers = await submit_all(self._tree, operations)
        return {
            pattern: _decoded(pattern, answer)
            async for pattern, answer in in_turns(list(zip(patterns, answers, strict=True)), NODES_A_TURN)
        }


def _decoded(pattern: ResourcePattern, answer: DataAndStat | TreeError) -> VersionedAcls | Exception:
    if isinstance(answer, NoNode):
        return NO_ACLS
    if isinstance(answer, UNANSWERED):
        return answer
    if isinstance(answer, TreeError):
        return BadZnode(str(answer))
    try:
        entries = acl_nodes.decode_acls(answer.data, acl_nodes.acl_path(pattern))
    except BadZnode as error:
        return error
    return VersionedAcls(entries, answer.stat.version)


def _write_of(pattern: ResourcePattern, acls: VersionedAcls, entries: Entries) -> Operation[object]:
    path = acl_nodes.acl_path(pattern)
    if not entries:
        return Delete(path, acls.zk_version)
    if acls.exists:
        return SetData(path, acl_nodes.encode_acls(entries), acls.zk_version)
    return Create(path, acl_nodes.encode_acls(entries))
