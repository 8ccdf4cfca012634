"""How lines of the log of runs are printed, wherever they come from."""

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from knockon.cli.output import STYLES, Form, console, print_json_line, show, show_instant, show_json


def print_log_line(line: Mapping[str, Any], output: Form) -> None:
    """Print one line, given as the API shows it; its data are masked."""
    if output is Form.JSON:
        print_json_line(line)
        return
    at, data = line["at"], line["data"]
    told = Text(show_instant(datetime.fromisoformat(at) if isinstance(at, str) else at), "dim")
    told.append(f"  {line['level']:<7}", STYLES.get(line["level"], "not dim default"))
    told.append(f"  {line['automation_key'] or '-'}  {line['run_id'] or '-'}  ", "not dim default")
    told.append(show(line["message"]), "not dim bold")
    told.append(show(f"  {show_json(data)}" if data else ""), "not dim default")
    console(sys.stdout).print(told, soft_wrap=True)
