"""The shapes that the tables have had, oldest first; each file moves every deployment one step forward."""
