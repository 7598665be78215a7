"""Keys that are parsed, and then refused or ignored with a warning."""
