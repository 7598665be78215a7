"""The authorizer with ACLs in the metadata tree, `authorizer.class.name=kafka.security.authorizer.AclAuthorizer`.

A decision is made by `AclCache` and logged by `audit_log`. `AclStore` changes the znodes. Two listeners read what other
brokers and tools have changed; after a lost session everything is read again, because notifications may have expired.

Kafka: AclAuthorizer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.security.authorizer.acl_cache import AclCache
from odradek.broker.security.authorizer.acl_store import AclStore, Change, ChangeSteps, Entries
from odradek.broker.security.authorizer.audit_log import audit_logger, log_decision
from odradek.broker.security.authorizer.client_host import java_host
from odradek.broker.security.authorizer.filter_index import EntryFilters, FilterIndex, first_match, merged
from odradek.broker.security.authorizer.ports import AclCreateResult, AclDeleteResult, Action, Authorizer
from odradek.controller.admin.node_changes import NodeChangeListener
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    check_principal,
)
from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes import acl_nodes
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.java_split import java_split, java_trim
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.security.authorizer.ports import AuthorizableRequestContext
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"


class AclAuthorizer(Authorizer):
    """See the module. `configure` and `start` must have returned before the first question.

    `has_prefixed_acls`: whether `inter.broker.protocol.version` knows prefixed patterns.
    """

    def __init__(
        self,
        client: MetadataClient,
        clock: Clock,
        timer: SystemTimer,
        random_below: Callable[[int], int],
        *,
        has_prefixed_acls: bool = True,
    ) -> None:
        self._client = client
        self._has_prefixed_acls = has_prefixed_acls
        self._super_users: frozenset[str] = frozenset()
        self._allows_everyone_if_no_acl_found = False
        self._cache = AclCache()
        self._store = AclStore(client, self._cache, timer, random_below)
        self._listeners = tuple(
            NodeChangeListener(client, clock, path, acl_nodes.CHANGE_PREFIX, self._process_change)
            for path in acl_nodes.CHANGES.values()
        )
        self._changed: set[ResourcePattern] = set()
        """Patterns that must be read again."""
        self._is_all_changed = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the keys of the configuration file. Raises: ConfigError."""
        users, everyone = configs.get(SUPER_USERS, ""), java_trim(configs.get(ALLOW_EVERYONE, "false")).lower()
        names = java_split(users, ";") if users else []
        try:
            self._super_users = frozenset(check_principal(java_trim(name)) for name in names)
        except ValueError as error:
            raise ConfigError(f"{SUPER_USERS}: {error}") from error
        if everyone not in ("true", "false"):
            raise ConfigError(f'{ALLOW_EVERYONE}: For input string: "{everyone}"')
        self._allows_everyone_if_no_acl_found = everyone == "true"

    async def start(self) -> None:
        """Create the parent nodes, read all ACLs, and listen for changes. Raises: BadZnode, TreeError."""
        await self._client.create_all(acl_nodes.PATHS)
        for listener in self._listeners:
            await listener.skip_notifications()
        await self._store.load()
        self._client.tree.add_session_listener(self)
        for listener in self._listeners:
            listener.listen()
        self._task = asyncio.get_running_loop().create_task(self._read_changes(), name="changes of ACLs")

    def close(self) -> None:
        for listener in self._listeners:
            listener.stop()
        if self._task is not None:
            self._task.cancel()

    # Decisions

    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action]) -> list[bool]:
        ctx = _with_java_host(ctx)
        return [self._authorize(ctx, action) for action in actions]

    def _authorize(self, ctx: AuthorizableRequestContext, action: Action) -> bool:
        operation, resource_type, name = action[:3]
        is_allowed = self._is_super_user(ctx.principal)
        if not is_allowed:
            found = self._cache.is_allowed(ctx.principal, ctx.client_host, operation, resource_type, name)
            is_allowed = self._allows_everyone_if_no_acl_found if found is None else found
            if audit_logger.isEnabledFor(logging.DEBUG):
                self._log_reason(ctx, action, has_acls=found is not None)
        log_decision(ctx, action, is_allowed)
        return is_allowed

    def _is_super_user(self, principal: str) -> bool:
        if principal not in self._super_users:
            return False
        audit_logger.debug("principal = %s is a super user, allowing operation without checking acls.", principal)
        return True

    def _log_reason(self, ctx: AuthorizableRequestContext, action: Action, *, has_acls: bool) -> None:
        operation, resource_type, name = action[:3]
        resource = ResourcePattern(resource_type, name, PatternType.LITERAL)
        if not has_acls:
            everyone = "true" if self._allows_everyone_if_no_acl_found else "false"
            audit_logger.debug("No acl found for resource %s, authorized = %s", resource, everyone)
            return
        entry = self._cache.deciding_entry(ctx.principal, ctx.client_host, operation, resource_type, name)
        if entry is not None:
            # Kafka names the operation that implies the one that was asked; with ALL, any of those that do.
            found = operation if entry.operation is AclOperation.ALL else entry.operation
            audit_logger.debug(
                "operation = %s on resource = %s from host = %s is %s based on acl = %s",
                found.name,
                resource,
                ctx.client_host,
                entry.permission_type.name,
                f"{entry.principal} has {entry.permission_type.name} permission for operations: "
                f"{entry.operation.name} from hosts: {entry.host}",
            )

    def authorize_by_resource_type(
        self, ctx: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        if self._is_super_user(ctx.principal):
            return True
        ctx = _with_java_host(ctx)
        is_allowed = self._cache.is_allowed_for_some(
            ctx.principal,
            ctx.client_host,
            operation,
            resource_type,
            by_default=self._allows_everyone_if_no_acl_found,
        )
        log_decision(ctx, Action(operation, resource_type, "NONE", 0), is_allowed, PatternType.UNKNOWN)
        return is_allowed

    # ACLs

    def acls(self, acl_filter: AclBindingFilter) -> Iterator[AclBinding | None]:
        return self._cache.bindings(acl_filter)

    @property
    def acl_count(self) -> int:
        return self._cache.count

    async def create_acls(
        self, ctx: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        refused: set[AclBinding] = set()
        added: dict[ResourcePattern, set[AclBinding]] = {}
        async for binding in in_turns(bindings):
            if self._is_refused(binding):
                refused.add(binding)
            else:
                added.setdefault(binding.pattern, set()).add(binding)
        changes = {pattern: _addition(new) async for pattern, new in in_turns(added.items())}
        errors = await self._store.update(changes)
        invalid = KafkaError(ErrorCode.INVALID_REQUEST, "Failed to create ACL")
        return [
            AclCreateResult(invalid if binding in refused else _api_error(errors.get(binding.pattern)))
            async for binding in in_turns(bindings)
        ]

    def _is_refused(self, binding: AclBinding) -> bool:
        """Kafka: AclAuthorizer.validateAclBinding."""
        is_prefixed = binding.pattern.pattern_type is PatternType.PREFIXED
        if is_prefixed and not self._has_prefixed_acls:
            return True
        return binding.is_unknown or "/" in binding.pattern.name

    async def delete_acls(
        self, ctx: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        index = FilterIndex()
        async for number, acl_filter in in_turns(enumerate(filters)):
            index.add(number, acl_filter)
        matching: dict[ResourcePattern, list[EntryFilters]] = {}
        async for match in in_turns(index.matches(self._cache.patterns())):
            if match is not None:
                matching.setdefault(match[0], []).append(match[1])
        deleted: dict[AclBinding, int] = {}
        changes = {
            pattern: _removal(pattern, of_entries, deleted) async for pattern, of_entries in in_turns(matching.items())
        }
        errors = await self._store.update(changes)
        found: dict[int, list[tuple[AclBinding, KafkaError | None]]] = {}
        async for binding, number in in_turns(deleted.items()):
            found.setdefault(number, []).append((binding, _api_error(errors.get(binding.pattern))))
        return [AclDeleteResult(None, tuple(found.get(number, ()))) async for number in in_turns(range(len(filters)))]

    # Changes made elsewhere

    async def _process_change(self, path: str, data: bytes | None) -> None:
        """Implements `node_changes.ProcessNotification`. Several changes of a pattern in a row are read once."""
        pattern = acl_nodes.decode_change(data, path.rpartition("/")[0])
        logger.info("Processing Acl change notification for %s", pattern)
        self._changed.add(pattern)
        self._wake.set()

    async def session_lost(self) -> None:
        """Implements SessionListener: the ACLs in memory stay in force."""

    def session_started(self) -> None:
        """Implements SessionListener."""
        self._is_all_changed = True
        self._wake.set()

    async def _read_changes(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, set()
            is_all_changed, self._is_all_changed = self._is_all_changed, False
            try:
                await (self._store.load() if is_all_changed else self._store.refresh(changed))
            except BadZnode as error:
                logger.error("ACLs that cannot be read stay as they were: %s", error)
            except TreeError as error:
                logger.error("Error while ACLs were read, which is tried again: %r", error)
                self._changed |= changed
                self._is_all_changed |= is_all_changed
                self._wake.set()
                await self._store.back_off()


def _with_java_host(ctx: AuthorizableRequestContext) -> AuthorizableRequestContext:
    host = ctx.client_host
    return ctx._replace(client_host=java_host(host)) if ":" in host else ctx


def _addition(bindings: set[AclBinding]) -> Change:
    def change(entries: Entries) -> ChangeSteps:
        new = set()
        for binding in bindings:
            check_principal(binding.entry.principal)
            new.add(binding.entry)
            yield
        return entries | new

    return change


def _removal(pattern: ResourcePattern, filters: Sequence[EntryFilters], deleted: dict[AclBinding, int]) -> Change:
    """Removes what the filters match, and remembers the first filter that matches an entry in `deleted`."""

    def change(entries: Entries) -> ChangeSteps:
        of_entries = yield from merged(filters)
        gone = set()
        for entry in entries:
            index = first_match(of_entries, entry)
            if index is not None:
                gone.add(entry)
                deleted.setdefault(AclBinding(pattern, entry), index)
            yield
        return entries - gone

    return change


def _api_error(error: Exception | None) -> KafkaError | None:
    """Kafka: AclAuthorizer.apiException, whose code is UNKNOWN_SERVER_ERROR."""
    return None if error is None else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
