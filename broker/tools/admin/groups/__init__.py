"""Consumer groups: lists, describes and deletes them, resets and deletes their offsets."""
