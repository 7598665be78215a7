"""One HTTP request to a URL of the configuration. Blocks: call it in the I/O pool.

Redirects are refused, because the allowed URL would not be the one that answers; proxies of the environment are not
used, as in Java.

Kafka: HttpAccessTokenRetriever; jose4j's SimpleGet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

TIMEOUT_SECONDS: Final = 20.0
"""Of connecting and of each read. As jose4j's."""

_TRUST_STORE: Final = "ssl.truststore"

ANSWER_BYTES_MAX: Final = 1024 * 1024


def request(url: str, options: Mapping[str, str], body: bytes | None = None, headers: Mapping[str, str] = {}) -> bytes:
    """GET, or POST if there is a body. `options`: of the JAAS entry. Raises: OSError, with the status but without the
    answer, which may have secrets; ConfigError.
    """
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None  # HTTPError follows

    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), NoRedirect()]
    if url.lower().startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=_tls_context(options)))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(urllib.request.Request(url, body, dict(headers)), timeout=TIMEOUT_SECONDS) as answer:
            data: bytes = answer.read(ANSWER_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise OSError(f"HTTP status {error.code} of {url}") from None
    except (HTTPException, ValueError) as error:
        raise OSError(f"{type(error).__name__} in the answer of {url}") from error
    if len(data) > ANSWER_BYTES_MAX:
        raise OSError(f"the answer of {url} is larger than {ANSWER_BYTES_MAX} bytes")
    return data


def check_trust_store(url: str, options: Mapping[str, str]) -> None:
    """Read the trust store that requests to this URL need. Raises: ConfigError, if it cannot be read."""
    if url.lower().startswith("https:"):
        try:
            _tls_context(options)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise ConfigError(f"{_TRUST_STORE}.location of the login module cannot be used: {error}") from error


def _tls_context(options: Mapping[str, str]) -> SSLContext:
    """The authorities of the machine, or those of `ssl.truststore.location` among the options, which must be PEM."""
    import ssl

    location = options.get(f"{_TRUST_STORE}.location")
    if location is not None and options.get(f"{_TRUST_STORE}.type") != "PEM":
        raise ConfigError(f"{_TRUST_STORE}.location of the login module needs {_TRUST_STORE}.type=PEM")
    context = ssl.create_default_context(cafile=location)
    # Python 3.13 and later refuse certificates without the key identifiers of RFC 5280, which Java accepts.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
