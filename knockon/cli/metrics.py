"""`knockon metrics`: what the API serves under `/metrics`, without the API."""

import typer

from knockon.cli.connections import opened_backends
from shared.metrics.exposition import Metrics


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("metrics")(metrics)


def metrics() -> None:
    """Print the deployment's metrics in the text form of Prometheus (docs/metrics.md)."""
    with opened_backends() as backends:
        typer.echo(Metrics(backends).text().decode(), nl=False)
