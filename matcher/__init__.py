"""Events in: the consumer group's batches become subjects, matches, and PENDING runs."""
