"""The transaction coordinator: `coordinator` is its front, `states` the theory."""
