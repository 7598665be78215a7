"""The URLs of the configuration: files, and HTTP servers that are in a list.

The list is `org.apache.kafka.sasl.oauthbearer.allowed.urls`. Apache Kafka has it in a system property of Java, and
without it takes every URL; here only files are taken without it.

Kafka: ConfigurationUtils.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote, urlsplit

from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from odradek.broker.security.sasl.ports import SaslContext

ALLOWED_URLS_KEY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def allowed_url(context: SaslContext, key: str) -> str:
    """The URL of a key. Raises: ConfigError, if it is missing or not allowed."""
    url = java_trim(cast("str | None", context.value(key)) or "")
    if not url:
        raise ConfigError(f"The OAuth configuration option {key} value must be non-null")
    allowed = cast("list[str] | None", context.value(ALLOWED_URLS_KEY))
    scheme = urlsplit(url).scheme.lower()
    if scheme not in ("http", "https", "file"):
        raise ConfigError(f'The OAuth configuration option {key} has a URL that is not "http", "https" or "file"')
    if url not in (allowed or ()) and not (scheme == "file" and allowed is None):
        raise ConfigError(f"{url} is not allowed. Add it to {ALLOWED_URLS_KEY} to allow it")
    return url


def file_of(url: str, key: str) -> Path:
    """The path of a `file:` URL. Raises: ConfigError."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ConfigError(f"The OAuth configuration option {key} has a file URL with a host")
    return Path(unquote(parts.path))
