"""How explanations, dry runs and backtests look on a terminal: tables of what the documents hold."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import yaml

from knockon.cli.output import print_line, print_note, print_table, show_instant, show_json
from shared.services.backtests import Made

SHOWN_CHARS: Final = 80

Row = tuple[object, ...]


def print_entry(entry: Mapping[str, Any]) -> None:
    """Say which entry it is, and how far it has come."""
    event = entry["event"]
    type_ = f", {event['type']}" if event else ""
    print_line(f"entry {entry['entry_id']}{type_}: {_STATES[entry['state']]}")
    if entry["reason"]:
        print_line(f"  {entry['reason']}")


_STATES: Final[Mapping[str, str]] = {
    "unread": "the matcher has not read it yet",
    "pending": "the matcher has it at hand",
    "taken": "the matcher has taken it",
    "dead": "it was given up, see: knockon events dead",
    "gone": "it is gone",
}


def explained_rows(explained: Mapping[str, Any]) -> Iterator[Row]:
    """Give the rows of one automation: one, or one for each leaf that is to blame."""
    key, verdict, stopped = explained["automation"]["key"], explained["verdict"], explained["stopped_by"]
    run = explained["run"]
    told = f"run {run['id']} {run['status']}" if run else ""
    if stopped is None:
        yield key, verdict, *(_waits(explained["pending"]) or ("", "", "", told))
        return
    why = f"{told}: {stopped['reason']}" if told else stopped["reason"]
    if not explained["blamed"]:
        yield key, verdict, stopped["check"], _value(stopped["wanted"]), _value(stopped["found"]), why
        return
    for place, leaf in enumerate(explained["blamed"]):
        said = leaf["reason"] if place else f"{told}: {leaf['reason']}" if told else leaf["reason"]
        named = (key, verdict) if not place else ("", "")
        yield *named, _leaf(leaf), _value(leaf["wanted"]), _value(leaf["found"]), said


def _waits(pending: Sequence[Mapping[str, Any]]) -> Row | None:
    """Tell of what waits with its hour, and of what does not any more, why."""
    if not pending:
        return None
    newest = pending[-1]
    why = f": {newest['skip_reason']}" if newest["skip_reason"] else ""
    said = f"pending execution {newest['id']} {newest['status']}{why}, due {_value(newest['due_at'])}"
    return "delay", "", newest["runs_after"] or "", said


def print_explained(rows: Sequence[Row]) -> None:
    """Print the rows of all automations."""
    print_table(("AUTOMATION", "VERDICT", "CHECK", "WANTED", "FOUND", "WHY"), rows)


def print_checks(document: Mapping[str, Any]) -> None:
    """Print every check and every leaf."""
    print_line("")
    print_table(
        ("CHECK", "SAYS", "WANTED", "FOUND", "WHY"),
        [
            (each["check"], _says(each), _value(each["wanted"]), _value(each["found"]), each["reason"])
            for each in document["checks"]
        ]
        + [
            (_leaf(each), _says(each), _value(each["wanted"]), _value(each["found"]), each["reason"])
            for each in document["leaves"]
        ],
    )


def print_actions(actions: Sequence[Mapping[str, Any]]) -> None:
    """Print each action as it would be handed over."""
    for action in actions:
        print_line(f"\naction {action['position']}/{len(actions)} {action['type']}", "bold")
        text = yaml.safe_dump(action["config"], sort_keys=False, allow_unicode=True).rstrip()
        print_line("\n".join(f"  {line}" for line in text.splitlines()))
        for name, words in _REMARKS.items():
            if action[name]:
                print_line(f"  {words}: {', '.join(action[name])}", "yellow")
        if action["fault"]:
            print_line(f"  would fail: {action['fault']['code']}: {action['fault']['message']}", "red")


_MADE: Final[Mapping[str, str]] = {
    Made.WOULD_RUN: "would run",
    Made.ARMED: "armed",
    Made.GOES_ON: "its episode goes on",
}
_REMARKS: Final[Mapping[str, str]] = {
    "missing": "not in the event, and rendered empty",
    "assumed": "known only once earlier actions are done",
    "secrets": "masked secrets",
}


def print_backtest(found: Mapping[str, Any]) -> None:
    """Print the counts of a backtest, then the leaves to blame, then examples."""
    ran = "would run" if found["delayed"] is None else "came due"
    counts = [(ran, found["would_run"]), *_episodes(found["delayed"]), *found["no"].items()]
    if found["unreadable"]:
        counts.append(("no event", found["unreadable"]))
    print_table(("VERDICT", "EVENTS"), [*counts, ("in all", found["events"])])
    if found["leaves"]:
        print_line("")
        rows = [(_leaf(each), each["said_no"]) for each in found["leaves"]]
        print_table(("LEAF", "SAID NO"), rows)
    if found["examples"]:
        print_line("")
        print_table(("ENTRY", "TYPE", "VERDICT", "WANTED", "FOUND", "WHY"), map(_example, found["examples"]))
    if found["next"]:
        print_note(f"there is more, from entry {found['next']} on; raise --limit to see it")


def _episodes(delayed: Mapping[str, Any] | None) -> list[tuple[str, int]]:
    if delayed is None:
        return []
    names = {"armed": "episodes armed", "ended": "ended before", "waiting": "still waiting"}
    return [(words, delayed[name]) for name, words in names.items()]


def _example(example: Mapping[str, Any]) -> Row:
    stopped = example["stopped_by"]
    if stopped is None:
        return example["entry_id"], example["type"], _MADE[example["made"]], "", "", ""
    said = example["blamed"][0] if example["blamed"] else stopped
    name = _leaf(said) if example["blamed"] else stopped["check"]
    return (
        example["entry_id"],
        example["type"],
        name,
        _value(said["wanted"]),
        _value(said["found"]),
        said["reason"],
    )


def _leaf(leaf: Mapping[str, Any]) -> str:
    return f"{leaf['path']}: {leaf['field']} {leaf['op']}"


def _says(check: Mapping[str, Any]) -> str:
    return "ok" if check["passed"] else "no"


def _value(value: object) -> str:
    if isinstance(value, datetime):
        return show_instant(value)
    text = value if isinstance(value, str) else "" if value is None else show_json(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
