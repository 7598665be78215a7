"""Clients of accepted connections: TLS handshakes, SASL, principals."""
