"""One run, from PENDING to its next resting state: guards, gate, actions, journal, dead letter."""
