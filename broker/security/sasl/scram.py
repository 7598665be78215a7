"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677) with the credentials of `/config/users`, and delegation tokens.

With `sasl.server.callback.handler.class` the operator's class has the credentials of users.

Checks that Apache Kafka does not make: the channel binding of the client's final message is the header of its first
message, and the nonce is exactly the one that was sent. An unknown user gets a salt and a number of iterations like a
known one, and is refused with the same message after the same computations; Apache Kafka refuses it one message
earlier.

A server computes a few hashes a message. The client's PBKDF2 takes milliseconds, so clients run in the io pool.

Kafka: ScramSaslServer, ScramServerCallbackHandler, ScramSaslClient, ScramLoginModule.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.security.sasl.login_options import login_name_and_password, require_module
from odradek.broker.security.sasl.ports import HandlerFailed, SaslAuthenticationError, SaslError, TokenInfo
from odradek.broker.security.sasl.scram_messages import (
    TOKEN_AUTH,
    ClientFinalMessage,
    ClientFirstMessage,
    ServerFinalMessage,
    ServerFirstMessage,
    sasl_name,
)
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.model.scram_mechanism import SALT_BITS, SCRAM_MECHANISMS, ScramMechanism, salt_of
from odradek.storage.config.config_def import Password

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.broker.security.sasl.callback_handlers import HandlerMethod
    from odradek.broker.security.sasl.ports import MakeSaslServer, SaslClient, SaslContext, TokenCache

LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"

FindCredential: TypeAlias = "Callable[[str], ScramCredential | Awaitable[ScramCredential | None] | None]"

NONCE_BYTES: Final = 18
SHARED_SECRETS: Final = ("delegation.token.secret.key", "delegation.token.master.key", "password.encoder.secret")
"""Keys whose value all brokers share, and which outlasts a restart: from the first that is set come the salts of
unknown users. Else these change with each start, and from broker to broker.
"""

DEFAULT_ITERATIONS: Final = 4096

CLIENT_ITERATIONS_MAX: Final = 1_000_000
"""More would keep a thread busy for seconds. `kafka-configs --zookeeper` sets no limit, the API one of 16384."""


def load_server(context: SaslContext) -> MakeSaslServer:
    """Raises: ConfigError."""
    require_module(context, LOGIN_MODULE)
    mechanism = SCRAM_MECHANISMS[context.mechanism]
    secret = _secret(context, mechanism)
    random_bytes, tokens = context.random_bytes, context.tokens
    find: FindCredential = partial(context.scram_credentials.scram_credential, mechanism.mechanism_name)
    if context.handler_class is not None:
        from odradek.broker.security.sasl.callback_handlers import ScramCallbackHandler, load_method

        method: HandlerMethod[ScramCredential | None] = load_method(context, ScramCallbackHandler, "credential")
        find = method
    return lambda: ScramSaslServer(mechanism, find, tokens, secret, random_bytes)


def _secret(context: SaslContext, mechanism: ScramMechanism) -> bytes:
    for key in SHARED_SECRETS:
        password = context.value(key)
        if isinstance(password, Password):
            label = f"salts of unknown users of {mechanism.mechanism_name}"
            return hmac.digest(password.value.encode(), label.encode(), mechanism.hash_name)
    return context.random_bytes(mechanism.hash_bytes)


def make_client(context: SaslContext) -> SaslClient:
    """Raises: ConfigError."""
    require_module(context, LOGIN_MODULE)
    username, password = login_name_and_password(context.jaas_entry)
    uses_token = context.jaas_entry.options.get(TOKEN_AUTH, "").lower() == "true"
    nonce = context.random_bytes(NONCE_BYTES).hex()
    return ScramSaslClient(SCRAM_MECHANISMS[context.mechanism], username, password, nonce, uses_token=uses_token)


_NO_TOKEN: Final = TokenInfo("User:", 0)
"""In place of an unknown one, whose login fails."""


class ScramSaslServer:
    """Implements `ports.SaslServer`. `find`: the credential of a user. `secret` makes the salts of unknown users."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: FindCredential,
        tokens: TokenCache | None,
        secret: bytes,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._mechanism = mechanism
        self._find = find
        self._tokens = tokens
        self._secret = secret
        self._random_bytes = random_bytes
        self._first: ClientFirstMessage | None = None
        self._server_first: ServerFirstMessage | None = None
        self._credential: ScramCredential | None = None
        self._is_known = False
        self.is_complete = False
        self.authorization_id = ""
        self.session_expiry_ms: int | None = None
        self.is_token_authenticated = False

    def evaluate_response(self, response: bytes, /) -> bytes | Awaitable[bytes]:
        if self._server_first is None:
            return self._receive_first(response)
        return self._receive_final(response)

    def _receive_first(self, message: bytes) -> bytes | Awaitable[bytes]:
        first = ClientFirstMessage.parse(message)
        user = first.user
        self.is_token_authenticated = first.is_token_authenticated
        if self.is_token_authenticated:
            return self._challenge(first, self._token_credential(user))
        self.authorization_id = user
        found = self._find(user)
        if isinstance(found, (ScramCredential, NoneType)):  # one call, also for an unknown user
            return self._challenge(first, found)
        return self._challenge_later(first, found)

    async def _challenge_later(self, first: ClientFirstMessage, finding: Awaitable[ScramCredential | None]) -> bytes:
        try:
            credential = await finding
        except HandlerFailed as error:
            raise SaslError("Authentication failed: Credentials could not be obtained") from error
        if not (credential is None or isinstance(credential, ScramCredential)):
            raise SaslError("Authentication failed: the class returned no ScramCredential")
        return self._challenge(first, credential)

    def _challenge(self, first: ClientFirstMessage, credential: ScramCredential | None) -> bytes:
        user = first.user
        if first.authorization_id not in ("", user):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        unknown = self._unknown_user_credential(user)
        self._is_known = credential is not None
        self._credential = credential or unknown
        if self._credential.iterations < self._mechanism.min_iterations:
            raise SaslError(f"Iterations {self._credential.iterations} is less than the minimum")
        nonce = first.nonce + self._random_bytes(NONCE_BYTES).hex()
        self._first = first
        self._server_first = ServerFirstMessage(nonce, self._credential.salt, self._credential.iterations)
        return self._server_first.to_bytes()

    def _token_credential(self, token_id: str) -> ScramCredential | None:
        """None: there is no such token. The same is done for it as for one that is there."""
        if self._tokens is None:
            return None
        info = self._tokens.token_info(token_id) or _NO_TOKEN
        self.authorization_id = info.owner.partition(":")[2]
        self.session_expiry_ms = info.expiry_ms
        return self._tokens.scram_credential(self._mechanism.mechanism_name, token_id)

    def _unknown_user_credential(self, user: str) -> ScramCredential:
        """Always the same for a user, so that two attempts look like those of a known one."""
        key = hmac.digest(self._secret, user.encode("utf-8", "replace"), self._mechanism.hash_name)
        number = int.from_bytes(hmac.digest(key, b"salt", "sha256"), "big") >> (256 - SALT_BITS)
        return ScramCredential(salt_of(number), key, key, DEFAULT_ITERATIONS)

    def _receive_final(self, message: bytes) -> bytes:
        first, server_first, credential = self._first, self._server_first, self._credential
        if first is None or server_first is None or credential is None:
            raise SaslError("Unexpected challenge in Sasl server state FAILED")
        self._first = self._credential = None  # one attempt
        final = ClientFinalMessage.parse(message)
        if final.nonce != server_first.nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        if final.channel_binding != first.gs2_header:
            raise SaslError("Invalid channel binding in the final client message.")
        auth_message = b",".join((first.bare, server_first.to_bytes(), final.without_proof))
        is_proof = self._mechanism.is_proof(final.proof, credential.stored_key, auth_message)
        if not (is_proof and self._is_known):
            raise SaslError("Invalid client credentials")
        self.is_complete = True
        return ServerFinalMessage(None, self._mechanism.hmac(credential.server_key, auth_message)).to_bytes()


class ScramSaslClient:
    """Implements `ports.SaslClient`."""

    def __init__(
        self, mechanism: ScramMechanism, username: str, password: str, nonce: str, *, uses_token: bool = False
    ) -> None:
        self._mechanism = mechanism
        self._password = password.encode()
        self._nonce = nonce
        extension = f",{TOKEN_AUTH}=true" if uses_token else ""
        self._bare = f"n={sasl_name(username)},r={nonce}{extension}".encode()
        self._signature: bytes | None = None
        self._has_begun = False
        self.is_complete = False

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        if not self._has_begun:
            self._has_begun = True
            return b"n,," + self._bare
        if self._signature is None:
            return self._final_message(challenge)
        final = ServerFinalMessage.parse(challenge)
        if final.error is not None:
            raise SaslError(
                f"Sasl authentication using {self._mechanism.mechanism_name} failed with error: {final.error}"
            )
        if not hmac.compare_digest(final.signature, self._signature):
            raise SaslError("Invalid server signature in server final message")
        self.is_complete = True
        return None

    def _final_message(self, challenge: bytes) -> bytes:
        mechanism = self._mechanism
        first = ServerFirstMessage.parse(challenge)
        if not first.nonce.startswith(self._nonce) or first.nonce == self._nonce:
            raise SaslError("Invalid server nonce: does not start with client nonce")
        if not mechanism.min_iterations <= first.iterations <= CLIENT_ITERATIONS_MAX:
            raise SaslError(f"Requested iterations {first.iterations} is less than the minimum, or above the maximum")
        without_proof = f"c=biws,r={first.nonce}".encode()
        salted = mechanism.salted_password(self._password, first.salt, first.iterations)
        auth_message = b",".join((self._bare, challenge, without_proof))
        self._signature = mechanism.hmac(mechanism.hmac(salted, b"Server Key"), auth_message)
        proof = mechanism.client_proof(salted, auth_message)
        return without_proof + b",p=" + b64encode(proof)
