"""What the test kit raises in a test."""

from __future__ import annotations


class BrokerStopped(Exception):
    """The broker does not run, or it ended before it answered."""


class WaitTimedOut(AssertionError):
    """What a test waited for did not happen in time. The message says what was there instead."""


class NoSuchTopic(AssertionError):
    """A test reads a topic that does not exist."""


class TopicDeleted(AssertionError):
    """The topic was deleted while a test waited for its records."""


class TooManyRecords(Exception):
    """A test asks for more records than the kit returns at once."""
