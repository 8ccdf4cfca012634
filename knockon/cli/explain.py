"""`knockon explain`: what each automation of a workspace made of one entry, and why."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from knockon.cli.connections import opened_backends, read_settings
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line
from knockon.cli.why_tables import explained_rows, print_checks, print_entry, print_explained
from shared.services.backends import Backends
from shared.services.why import Explanation, Wanted, explain_entry
from shared.services.why_shown import brief_document, entry_document, full_document
from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """Which entry, and for which automation."""

    entry_id: Annotated[
        str, typer.Argument(metavar="ENTRY_ID", help="The entry's id, as `knockon publish` prints it.")
    ]
    automation: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only this one, with every check.")
    ] = None
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("explain")(explain)


@takes(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Say what each automation made of an entry: its run, or the first check that said no."""
    settings = read_settings()
    with opened_backends() as backends:
        pages = list(_pages(backends, settings, options))
    entry = entry_document(pages[0].entry)
    show = full_document if options.automation else brief_document
    found = [show(each) for page in pages for each in page.automations]
    if options.output is Form.JSON:
        print_json({**entry, "automations": found})
        return
    print_entry(entry)
    if found:
        print_explained([row for each in found for row in explained_rows(each)])
    elif entry["event"]:
        print_line("there are no automations in this workspace")
    if options.automation and found:
        print_checks(found[0])


def _pages(backends: Backends, settings: Settings, options: ExplainOptions) -> Iterator[Explanation]:
    wanted = Wanted(options.automation)
    while True:
        found = explain_entry(backends, settings, options.workspace, options.entry_id, wanted)
        yield found
        if wanted.reference is not None or len(found.automations) < wanted.most:
            return
        wanted = replace(wanted, after=found.automations[-1].automation.key)
