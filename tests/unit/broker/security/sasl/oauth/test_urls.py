from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.security.sasl.oauth.urls import ALLOWED_URLS_KEY, allowed_url, file_of
from odradek.storage.config.config_def import ConfigError
from tests.support.in_process.security.oauth_contexts import oauth_context

KEY = "sasl.oauthbearer.jwks.endpoint.url"


def url(value: str | None, allowed: str | None = None) -> str:
    settings = {KEY: value, ALLOWED_URLS_KEY: allowed}
    return allowed_url(oauth_context({name: text for name, text in settings.items() if text is not None}), KEY)


def test_urls_that_are_allowed() -> None:
    assert url("file:/keys") == "file:/keys"
    assert url("https://idp/keys", "https://other, https://idp/keys") == "https://idp/keys"
    assert url("file:/keys", "file:/keys") == "file:/keys"


@pytest.mark.parametrize(
    ("value", "allowed", "reason"),
    [
        (None, None, "must be non-null"),
        (" ", None, "must be non-null"),
        ("https://idp/keys", None, "is not allowed"),
        ("https://idp/keys/", "https://idp/keys", "is not allowed"),
        ("file:/keys", "https://idp/keys", "is not allowed"),
        ("ftp://idp/keys", "ftp://idp/keys", 'not "http", "https" or "file"'),
        ("keys.json", "keys.json", 'not "http", "https" or "file"'),
    ],
)
def test_urls_that_are_refused(value: str | None, allowed: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        url(value, allowed)


def test_files() -> None:
    assert file_of("file:///a%20b/c", KEY) == file_of("file:/a%20b/c", KEY) == Path("/a b/c")
    assert file_of("file://localhost/c", KEY) == Path("/c")
    with pytest.raises(ConfigError, match="with a host"):
        file_of("file://server/c", KEY)
