"""The mechanism GSSAPI: Kerberos."""
