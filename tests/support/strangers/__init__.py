"""Tests of other projects against Odradek: `make strangers`. See docs/other-suites.md for what they say."""
