"""Every error of ours, one tree.

KnockonError
+-- ConfigError            a setting or a definition cannot be used; the text is for a person
|   +-- SettingsError      an environment variable; the start stops with its one line
|   `-- DefinitionError    an automation; carries the path of every fault
+-- BadEvent               an event that cannot be taken; goes to the dead stream with its reason
+-- IllegalMove            a change of state that is not in the table: a bug, never a race
+-- NotFound               what a person named does not exist in their workspace
+-- Conflict               what a person asked for does not go with the state that things are in
|   `-- IdTaken            the id that something new is to have is another's, or was
+-- Unavailable            SQL or Redis is away; the caller holds what it has and tries again
`-- ActionError            how an action ends that did not succeed; carries a stable code
    +-- RetryableError     worth another attempt
    `-- FatalError         not worth another attempt
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


class KnockonError(Exception):
    """The root of all errors that this project raises on purpose.

    `fix` says which command mends it. It is told at the command alone, never over HTTP.
    """

    def __init__(self, *args: object, fix: str = "") -> None:
        """Keep the message, and what mends it."""
        super().__init__(*args)
        self.fix = fix


class ConfigError(KnockonError):
    """Something a person wrote cannot be used; the message says what and where."""


class SettingsError(ConfigError):
    """A setting has a bad value; the message is one line that names it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a definition: where (`actions[1].config.url`) and what."""

    path: str
    message: str


class DefinitionError(ConfigError):
    """An automation's definition is refused; `faults` names every place."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        """Keep the faults; the message lists them."""
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults))


class BadEvent(KnockonError):
    """An event is refused: `field` is the one at fault, `reason` is for the publisher."""

    def __init__(self, field: str, reason: str) -> None:
        """Keep both; the message joins them."""
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


class IllegalMove(KnockonError):
    """A move of state that the table of moves does not have."""


class NotFound(KnockonError):
    """No such thing in this workspace; another workspace's things do not exist either."""


class Conflict(KnockonError):
    """The thing is not in a state in which this can be done; the message says which it is in."""


class IdTaken(Conflict):
    """The id that something new is to have is another's, or was."""


class Unavailable(KnockonError):
    """A server that is needed did not answer; nothing was decided."""


class ActionError(KnockonError):
    """An action did not succeed; `code` is stable, the message is for a person."""

    def __init__(self, code: str, message: str) -> None:
        """Keep the code; the message goes to rows, logs and notices, so it must hold no secret."""
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}")


class RetryableError(ActionError):
    """Worth another attempt, after at least `retry_after` if the other side asked for a wait."""

    def __init__(self, code: str, message: str, retry_after: timedelta | None = None) -> None:
        """Keep the code and the wait that was asked for."""
        super().__init__(code, message)
        self.retry_after = retry_after


class FatalError(ActionError):
    """Not worth another attempt: the run fails."""
