"""The vocabulary every room speaks: events, automations, moves, rows, keys and the queue port. Imports no other room."""
