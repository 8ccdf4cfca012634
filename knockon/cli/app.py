"""All commands under one name, each loaded from its module.

The door of the command asks for the one that was typed: a process that is started again should be back at
once, and all commands together carry the whole house with them.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

import typer

from knockon.cli.errors import Commands

MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "running",
        "up": "starting",
        "demo": "showing",
        "init": "setup",
        "migrate": "setup",
        "doctor": "doctor",
        "publish": "publish",
        "apply": "apply",
        "automations": "automations",
        "explain": "explain",
        "backtest": "backtest",
        "runs": "runs",
        "pending": "pending",
        "sequences": "sequences",
        "tail": "tail",
        "dead": "dead",
        "bulk": "bulk",
        "events": "events",
        "keys": "keys",
        "secrets": "secrets",
        "flags": "flags",
        "members": "members",
        "audit": "audit",
        "alerts": "alerts",
        "metrics": "metrics",
        "notices": "notices",
    }
)


def make_app(names: Iterable[str] = MODULES) -> typer.Typer:
    """Make the top with the commands of these names; names that share a module come together."""
    app = typer.Typer(
        cls=Commands,
        name="knockon",
        help="Domain events in, automations that run.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    for module in dict.fromkeys(MODULES[name] for name in names):
        import_module(f"knockon.cli.{module}").add_to(app)
    return app


def load(arguments: list[str]) -> typer.Typer:
    """Make the command that was typed; called with the arguments, it ends the process with its exit code."""
    typed = arguments[:1]
    return make_app(typed if typed and typed[0] in MODULES else MODULES)


def _top() -> None:
    """Domain events in, automations that run."""
