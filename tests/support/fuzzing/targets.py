"""The parsers of hostile bytes as functions of one input, each with the errors that it may raise.

An input that raises another error is a bug. `tests/golden/test_hostile_inputs.py` runs the corpus and mutations of it,
`tests/soak/network/test_fuzzer_soak.py` searches for more inputs by the coverage of the code.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Final, NamedTuple, cast

import crc32c

from odradek.broker.apis.connection.api_versions import unsupported_version_response
from odradek.broker.security.sasl.jaas import parse_jaas_config
from odradek.broker.security.sasl.oauth.access_token import AccessToken, IllegalToken
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.oauth.jwks import JsonWebKey, parse_jwks
from odradek.broker.security.sasl.oauth.jwt_validator import ClaimRules, JwtValidator
from odradek.broker.security.sasl.oauth.oauthbearer import OAuthBearerSaslServer
from odradek.broker.security.sasl.oauth.unsecured_validator import UnsecuredValidator
from odradek.broker.security.sasl.plain import PlainSaslServer
from odradek.broker.security.sasl.ports import SaslError, SaslServer
from odradek.broker.security.sasl.scram import ScramSaslServer
from odradek.broker.security.sasl.scram_messages import (
    ClientFinalMessage,
    ClientFirstMessage,
    ServerFinalMessage,
    ServerFirstMessage,
)
from odradek.broker.security.sasl.server_authenticator import (
    AuthenticationFailed,
    EnabledMechanism,
    InvalidPacket,
    SaslServerAuthenticator,
)
from odradek.broker.security.tls.der import DerError, certificate_names
from odradek.broker.security.tls.distinguished_name import rfc2253
from odradek.broker.security.tls.principal_mapper import NoMatchingRule, SslPrincipalMapper
from odradek.controller.model.acls import PatternType
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.model.scram_mechanism import ScramMechanism
from odradek.controller.znodes.acl_nodes import CHANGES, decode_acls, decode_change, encode_acls, encode_change
from odradek.controller.znodes.delegation_token_nodes import decode_token, encode_token
from odradek.controller.znodes.znode_json import BadZnode
from odradek.controller.znodes.znodes import decode_entity_config, encode_entity_config
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.errors import KafkaError
from odradek.protocol.headers import RequestHeader, decode_request, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.records.batch import batches
from odradek.storage.append_info import AppendOrigin, RecordValidationError
from odradek.storage.config.config_def import ConfigError
from odradek.storage.config.log_config import LogConfig
from odradek.storage.validation.validation_rules import ValidationRules
from odradek.storage.validation.validator import analyze, validate_and_assign
from odradek.timer.clock import ManualClock

NOW_MS: Final = 1_700_000_000_000
DECOMPRESSED_BYTES_MAX: Final = 1 << 20
BETWEEN_FRAMES: Final = b"\n\n"
"""Separates the frames, or the messages, of an input."""

SALT: Final = b"salt"
SALTED_PASSWORD: Final = b"salted"
ITERATIONS: Final = 4096
MAPPER: Final = SslPrincipalMapper("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=([^,]+)(,.*|$)/$1/, DEFAULT")
UNSIGNED: Final = UnsecuredValidator({}, lambda: NOW_MS)
RULES: Final = tuple(
    ValidationRules.of_config(
        LogConfig.from_props({}, settings),
        "t-0",
        validate_all=True,
        max_decompressed_bytes=DECOMPRESSED_BYTES_MAX,
    )
    for settings in (
        {},
        {"cleanup.policy": "compact", "message.timestamp.after.max.ms": "1000"},
        {"compression.type": "uncompressed", "message.timestamp.type": "LogAppendTime"},
    )
)


class Target(NamedTuple):
    run: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    """What `run` may raise."""


def _records(data: bytes) -> None:
    for batch in batches(memoryview(data)):
        batch.is_valid()
        for _ in batch.records(DECOMPRESSED_BYTES_MAX):
            pass


def _append(data: bytes) -> None:
    """The batches as a client produces them; the checksums are put right, else nothing behind them is reached."""
    rules = RULES[data[0] % len(RULES)] if data else RULES[0]
    found = analyze(memoryview(with_checksum(data[1:])), rules, AppendOrigin.CLIENT)
    if found:
        validate_and_assign(found, rules, AppendOrigin.CLIENT, next_offset=5, leader_epoch=1, now_ms=NOW_MS)


def with_checksum(data: bytes) -> bytes:
    """A first batch of magic 2 gets its size and its CRC."""
    if len(data) < 61 or data[16] != 2:
        return data
    batch = bytearray(data)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">I", batch, 17, crc32c.crc32c(bytes(batch[21:])))
    return bytes(batch)


class _AnyKey:
    """Takes every signature: what stands behind the check of it is tried, too."""

    def verify(self, algorithm: str, signature: bytes, signed: bytes) -> None:
        return None


ANY_KEY: Final = cast("JsonWebKey", _AnyKey())
SIGNED: Final = JwtValidator(
    ClaimRules(30, frozenset({"k"}), "i", "scope", "sub"),
    lambda key_id, algorithm: None if key_id == "unknown" else ANY_KEY,
    lambda: NOW_MS,
)


def _credential(user: str) -> ScramCredential | None:
    """SCRAM credentials of the user `u`."""
    return ScramMechanism.SCRAM_SHA_256.credential(SALT, SALTED_PASSWORD, ITERATIONS) if user == "u" else None


def _scram() -> SaslServer:
    return ScramSaslServer(ScramMechanism.SCRAM_SHA_256, _credential, None, b"secret", bytes)


MECHANISMS: Final[dict[str, EnabledMechanism]] = {
    "PLAIN": EnabledMechanism(lambda: PlainSaslServer(lambda user, password: (user, password) == ("u", "p")), 0),
    "SCRAM-SHA-256": EnabledMechanism(_scram, 0),
    "OAUTHBEARER": EnabledMechanism(lambda: OAuthBearerSaslServer(UNSIGNED, lambda: None), 0),
}


def _authenticator() -> SaslServerAuthenticator:
    return SaslServerAuthenticator(
        MECHANISMS,
        ManualClock(NOW_MS),
        lambda request, version: ApiVersionsResponse(),
        unsupported_version_response,
        lambda mechanism, authorization_id: f"User:{authorization_id}",
    )


def _sasl_frames(data: bytes) -> None:
    """Frames of a connection that has just been opened."""
    authenticator = _authenticator()
    for frame in data.split(BETWEEN_FRAMES):
        authenticator.receive(frame)
        authenticator.principal.encode()


def _sasl_messages(data: bytes) -> None:
    """The messages of the mechanism that the first byte selects, with or without SaslAuthenticate around them."""
    choice = data[0] if data else 0
    version = choice >> 7
    mechanism = list(MECHANISMS)[choice % len(MECHANISMS)]
    authenticator = _authenticator()
    header = RequestHeader(ApiKey.SASL_HANDSHAKE, version, 1)
    authenticator.receive(encode_request(header, SaslHandshakeRequest(mechanism=mechanism)))
    for message in data[1:].split(BETWEEN_FRAMES):
        request = SaslAuthenticateRequest(auth_bytes=message)
        frame = encode_request(RequestHeader(ApiKey.SASL_AUTHENTICATE, 2, 2), request) if version else message
        authenticator.receive(frame)
        authenticator.principal.encode()


def _oauth_message(data: bytes) -> None:
    parsed = ClientInitialResponse.parse(data)
    assert ClientInitialResponse.parse(parsed.to_bytes()) == parsed


def _token(validate: Callable[[str], AccessToken]) -> Callable[[bytes], None]:
    """Header and claims in JSON, and the rest as it is: random bytes seldom are base64. Without parts it is a token."""

    def run(data: bytes) -> None:
        parts = data.split(BETWEEN_FRAMES, 2)
        encoded = [urlsafe_b64encode(part).rstrip(b"=") for part in parts[:2]] if len(parts) == 3 else []
        token = b".".join((*encoded, parts[-1])).decode("latin-1")
        validate(token).principal_name.encode()

    return run


def _mapping(data: bytes) -> None:
    name, _, rules = data.decode("utf-8", "replace").partition("\n")
    MAPPER.name_of(name)
    SslPrincipalMapper(rules).name_of("a")


def _distinguished_name(data: bytes) -> None:
    MAPPER.name_of(rfc2253(data)).encode()


def _jaas(data: bytes) -> None:
    parse_jaas_config(data.decode("utf-8", "replace"))


def _acls(data: bytes) -> None:
    entries = decode_acls(data, "/kafka-acl/Topic/t")
    assert decode_acls(encode_acls(entries), "/kafka-acl/Topic/t") == entries


def _acl_change(path: str) -> Callable[[bytes], object]:
    return lambda data: encode_change(decode_change(data, path))


def _config(data: bytes) -> None:
    config = decode_entity_config(data)
    assert decode_entity_config(encode_entity_config(config)) == config


def _delegation_token(data: bytes) -> None:
    encode_token(decode_token(data, "/delegation_token/tokens/t"))


def _scram_credential(data: bytes) -> None:
    credential = ScramCredential.of_text(data.decode("utf-8", "replace"))
    assert ScramCredential.of_text(credential.to_text()) == credential


_REFUSED: Final = (AuthenticationFailed, InvalidPacket)

TARGETS: Final = {
    "requests": Target(decode_request, (DecodeError,)),
    "records": Target(_records, (KafkaError,)),
    "appends": Target(_append, (KafkaError, RecordValidationError)),
    "sasl_frames": Target(_sasl_frames, _REFUSED),
    "sasl_messages": Target(_sasl_messages, _REFUSED),
    "scram_client_first": Target(ClientFirstMessage.parse, (SaslError,)),
    "scram_client_final": Target(ClientFinalMessage.parse, (SaslError,)),
    "scram_server_first": Target(ServerFirstMessage.parse, (SaslError,)),
    "scram_server_final": Target(ServerFinalMessage.parse, (SaslError,)),
    "oauth_message": Target(_oauth_message, (SaslError,)),
    "signed_token": Target(_token(SIGNED.validate), (IllegalToken,)),
    "unsigned_token": Target(_token(UNSIGNED.validate), (IllegalToken,)),
    "jwks": Target(parse_jwks, (ValueError,)),
    "certificate": Target(certificate_names, (DerError,)),
    "distinguished_name": Target(_distinguished_name, (DerError, NoMatchingRule)),
    "mapping_rules": Target(_mapping, (ConfigError, NoMatchingRule)),
    "jaas": Target(_jaas, (ConfigError,)),
    "acl_node": Target(_acls, (BadZnode,)),
    "acl_change": Target(_acl_change(CHANGES[PatternType.LITERAL]), (BadZnode,)),
    "extended_acl_change": Target(_acl_change(CHANGES[PatternType.PREFIXED]), (BadZnode,)),
    "config_node": Target(_config, (BadZnode,)),
    "token_node": Target(_delegation_token, (BadZnode,)),
    "scram_node": Target(_scram_credential, (ValueError,)),
}


def run(target: Target, data: bytes) -> None:
    """One input. Raises whatever the target must not raise."""
    try:
        target.run(data)
    except target.errors as error:
        str(error).encode()  # it is logged, or sent to the client
