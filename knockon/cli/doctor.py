"""`knockon doctor`: what is missing or misconfigured, and the fix."""

from dataclasses import asdict, dataclass

import typer

from knockon.cli.options import Output, takes
from knockon.cli.output import Form, print_json, print_table
from knockon.doctor import examine
from knockon.findings import Finding, Level
from shared.errors import SettingsError
from shared.process import FAILED
from shared.settings import load_settings


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """How to print."""

    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("doctor")(doctor)


@takes(DoctorOptions)
def doctor(options: DoctorOptions) -> None:
    """Check the settings, Redis, SQL, the queues and the processes; exit code 1 if something fails."""
    findings = _examine()
    if options.output is Form.JSON:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = ((finding.level, finding.subject, finding.text, finding.fix) for finding in findings)
        print_table(("", "WHAT", "FOUND", "FIX"), rows)
    if any(finding.level is Level.FAIL for finding in findings):
        raise typer.Exit(FAILED)


def _examine() -> list[Finding]:
    try:
        return list(examine(load_settings()))
    except SettingsError as error:
        return [Finding(Level.FAIL, "settings", str(error), "correct the environment or .env")]
