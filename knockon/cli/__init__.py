"""The `knockon` command: one file a group of commands. It starts things and prints things."""
