from __future__ import annotations

import hashlib
import hmac

import pytest
from cryptography.exceptions import UnsupportedAlgorithm

from odradek.broker.security.sasl.oauth.access_token import IllegalToken, decode_bytes, split
from odradek.broker.security.sasl.oauth.jwks import KEYS_MAX, parse_jwks, select
from tests.support.jwt import (
    ec_jwk,
    ec_key,
    ed_jwk,
    ed_key,
    encoded,
    jwks,
    other_rsa_key,
    rsa_jwk,
    rsa_key,
    section,
    signed,
)

PRIVATE = {"RS": rsa_key(), "PS": rsa_key(), "Ed": ed_key()}
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
ALL = (rsa_jwk(rsa_key()), *(ec_jwk(curve) for curve in CURVES.values()), ed_jwk())
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *CURVES, "EdDSA"]


def verify(token: str, algorithm: str, keys: bytes = jwks(*ALL)) -> None:
    header, claims, signature = split(token)
    key = select(parse_jwks(keys), None, algorithm)
    assert key is not None
    key.verify(algorithm, decode_bytes(signature), f"{header}.{claims}".encode())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_signatures(algorithm: str) -> None:
    key = ec_key(CURVES[algorithm]) if algorithm in CURVES else PRIVATE[algorithm[:2]]
    token = signed({"a": 1}, key, algorithm)
    verify(token, algorithm)
    header, _, signature = token.split(".")
    short = encoded(decode_bytes(signature)[:-1])
    for bad in (f"{header}.{section({'a': 2})}.{signature}", f"{header}.{section({'a': 1})}.{short}"):
        with pytest.raises(IllegalToken, match="JWS signature is invalid"):
            verify(bad, algorithm)


def test_the_signature_of_another_key_is_invalid() -> None:
    with pytest.raises(IllegalToken, match="JWS signature is invalid"):
        verify(signed({}, other_rsa_key()), "RS256")


@pytest.mark.parametrize("algorithm", ["none", "HS256", "HS512", "RS1", "ES256K", "", "RSA1_5"])
def test_no_key_is_for_other_algorithms(algorithm: str) -> None:
    """A public key must not be taken for the secret of an HMAC."""
    secret = encoded(hmac.digest(b"k", b"d", hashlib.sha256))
    keys = parse_jwks(jwks(*ALL, {"kty": "oct", "k": secret, "alg": "HS256"}))
    assert select(keys, None, algorithm) is None


def test_the_key_of_an_id_and_an_algorithm() -> None:
    first, second = rsa_jwk(rsa_key(), kid="1"), rsa_jwk(other_rsa_key(), kid="2", alg="PS256")
    keys = parse_jwks(jwks(first, second))
    assert select(keys, "1", "RS256") is select(keys, None, "RS256") is keys[0]
    assert select(keys, "2", "PS256") is keys[1]
    assert select(keys, "2", "RS256") is None
    assert select(keys, "3", "RS256") is None


@pytest.mark.parametrize(
    "jwk",
    [
        rsa_jwk(rsa_key(), use="enc"),
        rsa_jwk(rsa_key(1024)),
        {"kty": "RSA", "n": "AQAB"},
        {"kty": "RSA", "n": 5, "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"},
        {"kty": "EC", "crv": "secp256k1", "x": "AQ", "y": "AQ"},
        {"kty": "EC", "crv": ["P-256"]},
        {"kty": "OKP", "crv": "Ed25519", "x": "AQ"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {},
    ],
)
def test_keys_that_cannot_verify_are_left_out(jwk: dict[str, object]) -> None:
    assert len(parse_jwks(jwks(jwk, ed_jwk()))) == 1


def test_a_key_of_a_curve_that_the_library_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def public_key(_: object) -> None:
        raise UnsupportedAlgorithm("the curve")

    monkeypatch.setattr(
        "cryptography.hazmat.primitives.asymmetric.ec.EllipticCurvePublicNumbers.public_key", public_key
    )
    unsupported = {"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"}
    assert len(parse_jwks(jwks(unsupported, ed_jwk()))) == 1


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"keys":{}}', b"[" * 100_000, jwks(*[{}] * (KEYS_MAX + 1))])
def test_what_is_no_set_of_keys(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        parse_jwks(data)
    assert parse_jwks(jwks(*[{}] * KEYS_MAX)) == []
