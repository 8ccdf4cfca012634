"""What one action does to the world: one file an action type, one registry, one judge of errors."""
