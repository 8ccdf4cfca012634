"""What the engine tells Prometheus of itself (docs/metrics.md): read from Redis and SQL when it is asked."""
