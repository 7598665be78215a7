"""JSON Web Keys (RFC 7517) with which tokens are signed, and the check of a signature (RFC 7518, RFC 8037).

Only asymmetric algorithms are known, and each key decides which of them it is for: so a token cannot choose `none`,
nor have a public key taken for the secret of an HMAC.

Kafka: JwksFileVerificationKeyResolver; jose4j's VerificationJwkSelector.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from odradek.broker.security.sasl.oauth.access_token import IllegalToken, decode_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.security.sasl.oauth.access_token import Claims, Json

PublicKey: TypeAlias = "rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey"

RSA_BITS_MIN: Final = 2048

KEYS_MAX: Final = 1000
"""More keys of one set are an error of the server that sends them."""

_HASHES: Final[dict[str, hashes.HashAlgorithm]] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
_CURVES: Final[dict[str, tuple[str, ec.EllipticCurve]]] = {
    "P-256": ("ES256", ec.SECP256R1()),
    "P-384": ("ES384", ec.SECP384R1()),
    "P-521": ("ES512", ec.SECP521R1()),
}
_RSA_ALGORITHMS: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})


class JsonWebKey(NamedTuple):
    key_id: str | None
    algorithms: frozenset[str]
    """Those that a signature with this key may have."""
    key: PublicKey

    def verify(self, algorithm: str, signature: bytes, signed: bytes) -> None:
        """Raises: IllegalToken."""
        try:
            _verify(self.key, algorithm, signature, signed)
        except InvalidSignature:
            raise IllegalToken("JWS signature is invalid") from None


def parse_jwks(data: bytes) -> list[JsonWebKey]:
    """The keys of a set that can verify signatures; others are left out. Raises: ValueError."""
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("the JWKS is nested too deeply") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list) or len(keys) > KEYS_MAX:
        raise ValueError(f"a JWKS is a JSON object with a list 'keys' of at most {KEYS_MAX}")
    parsed = (_parse(each) for each in keys if isinstance(each, dict))
    return [key for key in parsed if key is not None]


def select(keys: Sequence[JsonWebKey], key_id: Json, algorithm: str) -> JsonWebKey | None:
    """The first key for the algorithm, with that id if the token has one."""
    for key in keys:
        if algorithm in key.algorithms and key_id in (None, key.key_id):
            return key
    return None


def _parse(jwk: Claims) -> JsonWebKey | None:
    if jwk.get("use", "sig") != "sig":
        return None
    try:
        made = _key(jwk)
    except (IllegalToken, ValueError, UnsupportedAlgorithm):
        return None
    if made is None:
        return None
    key, algorithms = made
    algorithm = jwk.get("alg")
    if algorithm is not None:
        algorithms &= {str(algorithm)}
    key_id = jwk.get("kid")
    return JsonWebKey(key_id if isinstance(key_id, str) else None, algorithms, key)


def _key(jwk: Claims) -> tuple[PublicKey, frozenset[str]] | None:
    """The key and its algorithms; None if the type is unknown. Raises: IllegalToken, ValueError."""
    kind, curve = jwk.get("kty"), jwk.get("crv")
    if kind == "RSA":
        public = rsa.RSAPublicNumbers(_integer(jwk, "e"), _integer(jwk, "n")).public_key()
        return (public, _RSA_ALGORITHMS) if public.key_size >= RSA_BITS_MIN else None
    if kind == "EC" and isinstance(curve, str) and curve in _CURVES:
        algorithm, elliptic = _CURVES[curve]
        numbers = ec.EllipticCurvePublicNumbers(_integer(jwk, "x"), _integer(jwk, "y"), elliptic)
        return numbers.public_key(), frozenset({algorithm})
    if kind == "OKP" and curve == "Ed25519":
        return ed25519.Ed25519PublicKey.from_public_bytes(_bytes(jwk, "x")), frozenset({"EdDSA"})
    return None


def _bytes(jwk: Claims, name: str) -> bytes:
    value = jwk.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return decode_bytes(value)


def _integer(jwk: Claims, name: str) -> int:
    return int.from_bytes(_bytes(jwk, name), "big")


def _verify(key: PublicKey, algorithm: str, signature: bytes, signed: bytes) -> None:
    """Raises: InvalidSignature."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(signature, signed)
        return
    hash_algorithm = _HASHES[algorithm[2:]]
    if isinstance(key, rsa.RSAPublicKey):
        if algorithm.startswith("PS"):
            pss = padding.PSS(padding.MGF1(hash_algorithm), hash_algorithm.digest_size)
            key.verify(signature, signed, pss, hash_algorithm)
        else:
            key.verify(signature, signed, padding.PKCS1v15(), hash_algorithm)
        return
    half = (key.key_size + 7) // 8
    if len(signature) != 2 * half:
        raise InvalidSignature
    r, s = int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
    key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hash_algorithm))
