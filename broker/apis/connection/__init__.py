"""What a client asks of its connection: versions, SASL, forwarded requests."""
