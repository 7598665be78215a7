"""Long arrays of messages: as the bytes that came, made while they are read, or with their encoded elements kept."""
