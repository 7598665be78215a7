"""Requests to a real server on this machine, in its own thread."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from odradek.broker.security.sasl.oauth.http import ANSWER_BYTES_MAX, _tls_context, request
from odradek.storage.config.config_def import ConfigError


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, size = {"/ok": (200, 2), "/large": (200, ANSWER_BYTES_MAX + 1), "/error": (500, 6)}.get(
            self.path, (302, 0)
        )
        self.send_response(status)
        self.send_header("Location", "/ok")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(b"s" * size)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body + self.headers["Authorization"].encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


def test_answers(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # is not used
    assert request(f"{server}/ok", {}) == b"ss"
    assert request(f"{server}/token", {}, b"grant", {"Authorization": "Basic x"}) == b"grantBasic x"


@pytest.mark.parametrize(
    ("path", "reason"), [("/redirect", "302"), ("/error", "500"), ("/large", "is larger than"), ("/a b", "InvalidURL")]
)
def test_errors(server: str, path: str, reason: str) -> None:
    with pytest.raises(OSError, match=reason) as failed:
        request(f"{server}{path}", {})
    assert "ssss" not in str(failed.value)


def test_a_trust_store_is_pem() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.type=PEM"):
        request("https://127.0.0.1:1/", {"ssl.truststore.location": "/keys.jks"})
    with pytest.raises(OSError, match="refused"):
        request("https://127.0.0.1:1/", {})


def test_certificates_that_java_accepts_are_accepted_on_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 and later want key identifiers in them."""
    strict = ssl.create_default_context()
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: strict)
    context = _tls_context({})
    assert context.verify_flags & ssl.VERIFY_X509_STRICT == 0
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
