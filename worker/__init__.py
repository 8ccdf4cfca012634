"""The processes that drive runs: the queue worker on handles and the loop that hands back waiting retries."""
