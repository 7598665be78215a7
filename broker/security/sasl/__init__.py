"""SASL: mechanisms, JAAS entries, and the authentication of connections that were accepted or made."""
