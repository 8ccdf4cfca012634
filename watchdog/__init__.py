"""What crashed, got lost or grew old is put right: expired leases, lost handles, outbox leftovers."""
