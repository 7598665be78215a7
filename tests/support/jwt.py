"""Signed and unsigned tokens, and the keys to check them: what an authorization server would make."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

HASHES: dict[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def section(value: object) -> str:
    return encoded(json.dumps(value).encode())


def number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8 or 1, "big"))


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def other_rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def ec_key(curve: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key({"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}[curve])


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def rsa_jwk(key: rsa.RSAPrivateKey, **fields: object) -> dict[str, object]:
    numbers = key.public_key().public_numbers()
    return {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e), **fields}


def ec_jwk(curve: str, **fields: object) -> dict[str, object]:
    numbers = ec_key(curve).public_key().public_numbers()
    return {"kty": "EC", "crv": curve, "x": number(numbers.x), "y": number(numbers.y), **fields}


def ed_jwk(**fields: object) -> dict[str, object]:
    return {"kty": "OKP", "crv": "Ed25519", "x": encoded(ed_key().public_key().public_bytes_raw()), **fields}


def jwks(*keys: dict[str, object]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def unsigned(claims: object, **header: object) -> str:
    return f"{section({'alg': 'none', **header})}.{section(claims)}."


def signed(
    claims: object,
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey,
    algorithm: str = "RS256",
    **header: object,
) -> str:
    text = f"{section({'alg': algorithm, **header})}.{section(claims)}"
    return f"{text}.{encoded(signature(text.encode(), key, algorithm))}"


def signature(
    data: bytes, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, algorithm: str
) -> bytes:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    hash_algorithm = HASHES[algorithm[2:]]
    if isinstance(key, rsa.RSAPrivateKey):
        if algorithm.startswith("PS"):
            return key.sign(data, padding.PSS(padding.MGF1(hash_algorithm), hash_algorithm.digest_size), hash_algorithm)
        return key.sign(data, padding.PKCS1v15(), hash_algorithm)
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hash_algorithm)))
    size = (key.key_size + 7) // 8
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")
