"""Creates, renews and expires delegation tokens in the metadata tree, and follows the changes of other brokers.

A token is a node below `/delegation_token/tokens`. Its HMAC, which is the password of its owner, is computed from the
token id and `delegation.token.secret.key`, so it is in no node. Each change is notified by a sequential node below
`/delegation_token/token_changes`.

One change runs at a time: between a check of a token and its write the broker waits for the tree.

Kafka: DelegationTokenManager, DelegationTokenManagerZk.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from base64 import b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.machine.io_pool import run_in_pool
from odradek.broker.security.tokens.token_cache import DelegationToken, DelegationTokenCache
from odradek.controller.admin.node_changes import NodeChangeListener
from odradek.controller.model.delegation_token import TokenInformation
from odradek.controller.model.scram_mechanism import ScramMechanism, random_salt
from odradek.controller.tree.metadata_tree import UNANSWERED, Create, CreateMode, Delete, NoNode, SetData, TreeError
from odradek.controller.znodes.delegation_token_nodes import (
    TOKEN_CHANGE_PREFIX,
    TOKEN_CHANGES,
    TOKENS,
    decode_token,
    encode_token,
    token_path,
)
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.layout import MAX_INT64

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.controller.model.delegation_token import Principal
    from odradek.controller.model.scram_credential import ScramCredential
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)


LOADED_AT_ONCE: Final = 64
"""Tokens whose credentials are computed together at the start; each takes milliseconds of a thread."""


class TokenSettings(NamedTuple):
    """`secret` is `delegation.token.secret.key`, the others are the keys of their names. The repr has no secret."""

    secret: bytes
    max_lifetime_ms: int
    expiry_time_ms: int

    def __repr__(self) -> str:
        return f"TokenSettings(max_lifetime_ms={self.max_lifetime_ms}, expiry_time_ms={self.expiry_time_ms})"


class DelegationTokenManager:
    """See the module. `new_token_id`: 16 random bytes as text; `random_bytes` makes salts.

    The coroutines raise TreeError if the metadata tree fails; then the change may have been made or not.
    """

    def __init__(
        self,
        client: MetadataClient,
        clock: Clock,
        io_pool: IoPool,
        settings: TokenSettings,
        new_token_id: Callable[[], str],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.cache = DelegationTokenCache()
        self._client = client
        self._clock = clock
        self._io_pool = io_pool
        self._settings = settings
        self._new_token_id = new_token_id
        self._random_bytes = random_bytes
        self._one_change = asyncio.Lock()
        self._changes = NodeChangeListener(
            client, clock, TOKEN_CHANGES, TOKEN_CHANGE_PREFIX, self._token_changed, self._load_cache
        )

    # Start and stop

    async def startup(self) -> None:
        """Load all tokens, then begin to follow changes."""
        await self._client.create_all((TOKEN_CHANGES, TOKENS))
        await self._changes.process_notifications()  # sets the watch before the tokens are read
        await self._load_cache()
        self._changes.listen()

    async def shutdown(self) -> None:
        await self._changes.shutdown()

    async def _load_cache(self) -> None:
        """Bring the whole cache to the state of the tree."""
        async with self._one_change:
            token_ids = set(await self._client.children(TOKENS))
            logger.info("Loading the token cache. Total token count: %d", len(token_ids))
            for token in self.cache.tokens():
                if token.info.token_id not in token_ids:
                    self.cache.remove(token.info.token_id)
            unread = sorted(token_ids)
            while unread:
                some, unread = unread[:LOADED_AT_ONCE], unread[LOADED_AT_ONCE:]
                await asyncio.gather(*(self._read_token(token_id) for token_id in some))

    async def _token_changed(self, _: str, data: bytes | None) -> None:
        token_id = (data or b"").decode("utf-8", "replace")
        logger.info("Processing Token Notification for tokenId: %s", token_id)
        async with self._one_change:
            await self._read_token(token_id)

    async def _read_token(self, token_id: str) -> None:
        """Bring the cache to the state of the tree. A token whose node cannot be read stays as it was."""
        path = token_path(token_id)
        try:
            node = await self._client.get(path)
            info = None if node is None else decode_token(node.data, path)
        except UNANSWERED:
            raise
        except (TreeError, BadZnode) as error:
            logger.error("Error while getting Token for tokenId: %s: %s", token_id, error)
            return
        if info is None:
            self.cache.remove(token_id)
        else:
            await self._update_cache(info)

    # Requests

    async def create_token(
        self, owner: Principal, requester: Principal, renewers: Sequence[Principal], max_lifetime_ms: int
    ) -> DelegationToken:
        """Create a token; a lifetime of 0 or less is the longest one. It ends at the last time that has 64 bits."""
        longest_ms = self._settings.max_lifetime_ms
        async with self._one_change:
            issue_ms = self._clock.time_ms()
            lifetime_ms = longest_ms if max_lifetime_ms <= 0 else min(max_lifetime_ms, longest_ms)
            max_ms = min(issue_ms + lifetime_ms, MAX_INT64)
            info = TokenInformation(
                token_id=self._new_token_id(),
                owner=owner,
                requester=requester,
                renewers=tuple(renewers),
                issue_ms=issue_ms,
                max_ms=max_ms,
                expiry_ms=min(max_ms, issue_ms + self._settings.expiry_time_ms),
            )
            path, data = token_path(info.token_id), encode_token(info)
            try:
                await self._client.tree.run(SetData(path, data))
            except NoNode:
                await self._client.tree.run(Create(path, data))
            token = await self._update_cache(info)
            await self._notify(info.token_id)
        logger.info("Created a delegation token: %s for owner: %s", info.token_id, owner)
        return token

    async def renew_token(self, principal: Principal, hmac_of_token: bytes, period_ms: int) -> int:
        """Move the expiry, at most up to the end of the lifetime, and return it. A negative period is the default.

        Raises: KafkaError DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH or DELEGATION_TOKEN_EXPIRED.
        """
        async with self._one_change:
            info = self._own_token(principal, hmac_of_token)
            now_ms = self._clock.time_ms()
            if info.is_expired(now_ms):
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            period_ms = self._settings.expiry_time_ms if period_ms < 0 else period_ms
            info = info._replace(expiry_ms=min(info.max_ms, now_ms + period_ms))
            await self._change_token(info)
        logger.info("Delegation token renewed for token: %s for owner: %s", info.token_id, info.owner)
        return info.expiry_ms

    async def expire_token(self, principal: Principal, hmac_of_token: bytes, period_ms: int) -> int:
        """Set the expiry, or remove the token if the period is negative. Returns the time of expiry.

        Raises: KafkaError as `renew_token`; an expired token can be removed.
        """
        async with self._one_change:
            info = self._own_token(principal, hmac_of_token)
            now_ms = self._clock.time_ms()
            if period_ms < 0:
                await self._remove_token(info.token_id)
                logger.info("Token expired for token: %s for owner: %s", info.token_id, info.owner)
                return now_ms
            if info.is_expired(now_ms):
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            info = info._replace(expiry_ms=min(info.max_ms, now_ms + period_ms))
            await self._change_token(info)
        logger.info("Updated expiry time for token: %s for owner: %s", info.token_id, info.owner)
        return info.expiry_ms

    async def expire_tokens(self) -> None:
        """Remove the expired tokens."""
        async with self._one_change:
            for token in self.cache.tokens():
                info = token.info
                if info.is_expired(self._clock.time_ms()):
                    logger.info("Delegation token expired for token: %s for owner: %s", info.token_id, info.owner)
                    await self._remove_token(info.token_id)

    def _own_token(self, principal: Principal, hmac_of_token: bytes) -> TokenInformation:
        token = self.cache.token_for_hmac(hmac_of_token)
        if token is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if not token.info.may_renew(principal):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return token.info

    # Nodes and the cache

    async def _change_token(self, info: TokenInformation) -> None:
        """Raises: KafkaError DELEGATION_TOKEN_NOT_FOUND if another broker has removed the token.

        Apache Kafka would create its node again. A thief who renews a token all the time would keep it then, although
        its owner has it removed.
        """
        try:
            await self._client.tree.run(SetData(token_path(info.token_id), encode_token(info)))
        except NoNode:
            self.cache.remove(info.token_id)
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND) from None
        await self._update_cache(info)
        await self._notify(info.token_id)

    async def _remove_token(self, token_id: str) -> None:
        with contextlib.suppress(NoNode):
            await self._client.tree.run(Delete(token_path(token_id)))
        self.cache.remove(token_id)
        await self._notify(token_id)

    async def _notify(self, token_id: str) -> None:
        path = f"{TOKEN_CHANGES}/{TOKEN_CHANGE_PREFIX}"
        await self._client.tree.run(Create(path, token_id.encode(), CreateMode.PERSISTENT_SEQUENTIAL))

    async def _update_cache(self, info: TokenInformation) -> DelegationToken:
        """The HMAC of a token never changes, so a known token keeps its credentials."""
        known = self.cache.token(info.token_id)
        if known is None:
            secret = hmac.digest(self._settings.secret, info.token_id.encode(), "sha512")
            token = DelegationToken(info, secret, await self._credentials(secret))
        else:
            token = known._replace(info=info)
        self.cache.update(token)
        return token

    async def _credentials(self, secret: bytes) -> Mapping[str, ScramCredential]:
        """The SCRAM credentials whose password is the HMAC as base64, computed in the I/O pool."""
        password = b64encode(secret)
        salts = {mechanism: random_salt(self._random_bytes) for mechanism in ScramMechanism}

        def work() -> dict[str, ScramCredential]:
            return {
                mechanism.mechanism_name: mechanism.credential(
                    salt,
                    mechanism.salted_password(password, salt, mechanism.min_iterations),
                    mechanism.min_iterations,
                )
                for mechanism, salt in salts.items()
            }

        return await run_in_pool(self._io_pool, work)
