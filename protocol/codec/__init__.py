"""The schema of messages, and the compiler that makes codecs of it."""
