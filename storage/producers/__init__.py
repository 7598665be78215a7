"""Producer state: sequences, epochs, open transactions."""
