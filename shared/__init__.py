"""The vocabulary every room speaks: events, automations, moves, rows, keys, the queue port.

Imports no room.
"""
