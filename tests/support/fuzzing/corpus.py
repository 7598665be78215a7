"""Where fuzzing begins: valid inputs of every target, and the files in tests/golden/hostile_inputs.

Such a file is an input that once raised an undeclared error; its name says which and where.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from odradek.broker.security.sasl.scram import NONCE_BYTES
from odradek.broker.security.sasl.scram_messages import ServerFirstMessage
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.model.scram_mechanism import ScramMechanism
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import SimpleRecord
from tests.support.certificates import Authority
from tests.support.fuzzing.targets import BETWEEN_FRAMES, ITERATIONS, NOW_MS, SALT, SALTED_PASSWORD
from tests.support.jwt import ed_jwk, jwks, section
from tests.support.wire.mutated_frames import originals

CLAIMS = {"sub": "u", "exp": NOW_MS // 1000 + 60, "iat": NOW_MS // 1000, "aud": "k", "iss": "i", "scope": ["a"]}
CORPUS = Path(__file__).parents[2] / "golden" / "hostile_inputs"
FIRST = b"n,a=u,n=u,r=nonce,tokenauth=true"
FINAL = b"c=biws,r=nonce" + b"00" * 18 + b",p=" + b"QUJD" * 8


def corpus(target: str) -> list[bytes]:
    return [*seeds()[target], *(path.read_bytes() for path in sorted((CORPUS / target).glob("*")))]


@cache
def seeds() -> dict[str, list[bytes]]:
    records = [SimpleRecord(NOW_MS, b"k", b"value" * 9, (("h", b"x"),)), SimpleRecord(NOW_MS + 5, None, b"w")]
    v2 = [bytes(build_batch(records, compression_type=codec)) for codec in CompressionType]
    old = [bytes(build_messages(records, magic, compression_type=codec)) for magic in (0, 1) for codec in range(4)]
    certificate = Authority().issue("broker", organization="Org").certificate
    unsigned = f"{section({'alg': 'none'})}.{section(CLAIMS)}."
    oauth = f"n,a=u,\x01auth=Bearer {unsigned}\x01x=y\x01\x01".encode()
    tokens = [
        json.dumps({"alg": alg, "kid": "1"}).encode() + BETWEEN_FRAMES + json.dumps(CLAIMS).encode()
        for alg in ("none", "EdDSA")
    ]
    change = {"version": 1, "resourceType": "TOPIC", "name": "t", "patternType": "PREFIXED"}
    versions = encode_request(
        RequestHeader(ApiKey.API_VERSIONS, 3, 1, "c"),
        ApiVersionsRequest(client_software_name="a", client_software_version="1"),
    )
    handshake = encode_request(RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 2, "c"), SaslHandshakeRequest(mechanism="PLAIN"))
    return {
        "requests": originals(1),
        "records": v2 + old,
        "appends": [bytes([rules]) + batch for rules in range(3) for batch in v2 + old],
        "sasl_frames": [versions, handshake, versions + BETWEEN_FRAMES + handshake],
        "sasl_messages": [b"\x00\0u\0p", b"\x81\0u\0p", b"\x01" + _scram_messages(), b"\x02" + oauth],
        "scram_client_first": [FIRST],
        "scram_client_final": [FINAL],
        "scram_server_first": [b"r=nonce,s=QUJD,i=4096"],
        "scram_server_final": [b"v=QUJD", b"e=other-error"],
        "oauth_message": [oauth],
        "signed_token": [token + BETWEEN_FRAMES + b"QUJD" for token in tokens],
        "unsigned_token": [*(token + BETWEEN_FRAMES for token in tokens), unsigned.encode()],
        "jwks": [jwks(ed_jwk(kid="1"))],
        "certificate": [certificate.public_bytes(Encoding.DER)],
        "distinguished_name": [certificate.subject.public_bytes()],
        "mapping_rules": [b"CN=a,OU=ServiceUsers,O=b\nRULE:^CN=(.*?),OU=b$/$1@x/L, DEFAULT"],
        "jaas": [b'a.b.C required username="al\\"ice" user_x=\'\\101\' n=word /* c */;', b"a required;"],
        "acl_node": [_acl_node()],
        "acl_change": [b"TOPIC:t"],
        "extended_acl_change": [json.dumps(change).encode()],
        "config_node": [b'{"version":1,"config":{"a":"b"}}'],
        "token_node": [_token_node()],
        "scram_node": [ScramCredential(b"salt", b"stored", b"server", 4096).to_text().encode()],
    }


def _scram_messages() -> bytes:
    """Those of a client that knows the password."""
    bare, nonce = b"n=u,r=nonce", b"nonce" + bytes(NONCE_BYTES).hex().encode()
    server_first = ServerFirstMessage(nonce.decode(), SALT, ITERATIONS).to_bytes()
    without_proof = b"c=biws,r=" + nonce
    auth_message = b",".join((bare, server_first, without_proof))
    proof = ScramMechanism.SCRAM_SHA_256.client_proof(SALTED_PASSWORD, auth_message)
    return b"n,," + bare + BETWEEN_FRAMES + without_proof + b",p=" + b64encode(proof)


def _acl_node() -> bytes:
    entry = {"principal": "User:a", "permissionType": "Allow", "host": "*", "operation": "Read"}
    return json.dumps({"version": 1, "acls": [entry]}).encode()


def _token_node() -> bytes:
    times = {"issueTimestamp": 1, "maxTimestamp": 3, "expiryTimestamp": 2}
    names = {"tokenRequester": "User%3Aa", "tokenId": "id", "owner": "User%3Aa", "renewers": ["User%3Ab"]}
    return json.dumps({"version": 3, **times, **names}).encode()
