"""The daemon: network layer, request handlers, replica manager, wiring."""
