"""Records of an input, and consumed records as bytes for the output."""
