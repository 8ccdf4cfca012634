"""The HTTP API: one process, one resource a module. `app.make_app` puts it together (docs/api.md)."""
