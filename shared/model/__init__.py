"""Nouns: what an event, an automation, a run, a subject and an effect are, and which moves are legal."""
