"""Time: the only reader of the clock, zones and cron."""
