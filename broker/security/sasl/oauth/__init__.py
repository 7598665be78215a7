"""OAUTHBEARER (RFC 7628): clients prove who they are with a token that somebody else has issued."""
