"""Pure decisions: conditions, templates, backoff. No clock, no I/O, no globals."""
