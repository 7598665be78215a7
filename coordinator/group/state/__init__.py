"""The state of one group: members, offsets, records."""
