"""The messages of the protocol, one file per API: a schema of all versions, and what each version changed.

Import the module of the API you need; nothing is imported from here, so that a start pays only for what it uses.
"""
