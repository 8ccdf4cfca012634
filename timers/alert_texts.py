"""The words of an alert: subject, plain text and HTML. Pure."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from shared.masking import mask_urls
from shared.model.alert_message import AlertMessage, AlertPart
from shared.rules.alerting import GroupState

PLACE_CHARS: Final = 80
SUBJECT_CHARS: Final = 200

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")

Row = tuple[str, str]


def one_line(text: str) -> str:
    """Give a text as one line that steers nothing, without the credentials of a URL."""
    return _UNPRINTABLE.sub(" ", mask_urls(text)).strip()


def subject_of(message: AlertMessage) -> str:
    """Say in one line what is in trouble, why, and how often."""
    lead = message.parts[0]
    if message.groups == 1:
        what = f"{_short(lead.place)}: {lead.code} ({lead.count}x)"
    elif message.about is not None:
        what = f"{_short(message.about)}: {message.groups} kinds of errors ({message.letters}x)"
    else:
        what = f"{message.groups} kinds of errors ({message.letters}x)"
    return one_line(f"[knockon] {what}")[:SUBJECT_CHARS]


def plain_text(message: AlertMessage) -> str:
    """Write the message for a reader without HTML."""
    blocks = [_plain_part(part, message.workspace_id) for part in message.parts]
    return "\n\n".join([*blocks, *_closing(message)]) + "\n"


def html_text(message: AlertMessage) -> str:
    """Write the message as HTML; every word of it is escaped."""
    parts = "\n".join(_html_part(part, message.workspace_id) for part in message.parts)
    closing = "\n".join(f"<p>{escape(line)}</p>" for line in _closing(message))
    return f"<!doctype html>\n<html><body>\n{parts}\n{closing}\n</body></html>\n"


def _plain_part(part: AlertPart, workspace_id: str) -> str:
    facts = [f"{name}: {value}" for name, value in _facts(part)]
    commands = [f"{name}:\n  " + "\n  ".join(lines) for name, lines in _commands(part, workspace_id)]
    return "\n".join([one_line(part.title), _counted(part), "", *facts, "", *commands])


def _html_part(part: AlertPart, workspace_id: str) -> str:
    facts = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in _facts(part)
    )
    commands = "".join(
        f"<p>{escape(name)}:<br>" + "<br>".join(f"<code>{escape(line)}</code>" for line in lines) + "</p>"
        for name, lines in _commands(part, workspace_id)
    )
    title = f"<h3>{escape(one_line(part.title))}</h3>"
    return f"{title}\n<p>{escape(_counted(part))}</p>\n<table>{facts}</table>\n{commands}"


def _counted(part: AlertPart) -> str:
    """Say how many there are, and what is new about them."""
    letters = "1 dead letter" if part.count == 1 else f"{part.count} dead letters"
    if part.since is not None:
        said = f"{part.more} more since {show_time(part.since)}, {part.count} in all."
    else:
        said = f"{letters} so far."
    return f"It is back after a quiet day: {said}" if part.state is GroupState.REGRESSED else said


def _facts(part: AlertPart) -> Iterator[Row]:
    if part.shares:
        yield "Automations", _shared(part)
    else:
        yield "Automation", one_line(part.automation)
    if part.host is not None:
        yield "Host", one_line(part.host)
    yield "Error", one_line(f"{part.code} — {part.message}")
    yield "First seen", show_time(part.first_at)
    yield "Last seen", show_time(part.last_at)
    yield "Newest run", one_line(part.run_id)


def _shared(part: AlertPart) -> str:
    """Name the automations that share a group, those with the most dead letters first, and count the rest."""
    named = [f"{one_line(each.automation)} ({each.count})" for each in part.shares]
    others = part.automations - len(part.shares)
    left = part.count - sum(each.count for each in part.shares)
    return ", ".join([*named, *([f"and {others} others ({left})"] if others else [])])


def _commands(part: AlertPart, workspace_id: str) -> Iterator[tuple[str, Sequence[str]]]:
    where = one_line(f"--workspace {workspace_id}")
    yield "Look", [f"knockon runs show {one_line(part.run_id)} {where}"]
    yield from _replays(part, where)
    yield "Hear nothing of it for a day", [f"knockon alerts mute {part.fingerprint} --for 24h {where}"]


def _replays(part: AlertPart, where: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Give a command for each automation that is named; these replay its other dead letters, too."""
    if part.automation_id is None:
        return
    named = [each.automation_id for each in part.shares] or [part.automation_id]
    yield (
        "Replay, once its cause is gone",
        [f"knockon dead replay --automation {one_line(found)} {where}" for found in named],
    )
    others = part.automations - len(named)
    if others > 0:
        yield (
            f"Replay all dead letters of the workspace, those of the {others} others among them",
            [f"knockon dead replay --all {where}"],
        )


def _closing(message: AlertMessage) -> Iterator[str]:
    if message.unshown_groups:
        yield (
            f"And {message.unshown_letters} dead letters of {message.unshown_groups} other kinds:"
            f" knockon alerts list --workspace {one_line(message.workspace_id)}"
        )
    if message.quiet_until is not None:
        yield (
            f"Muted until {show_time(message.quiet_until)}: there were many messages of late."
            " What happens meanwhile is counted, and a digest follows."
        )


def show_time(at: datetime) -> str:
    """Write an instant for a person, in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _short(text: str) -> str:
    plain = one_line(text)
    return plain if len(plain) <= PLACE_CHARS else f"{plain[: PLACE_CHARS - 1]}…"
