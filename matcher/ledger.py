"""The open rows about the subjects of a set of events, kept as they stand while the set is gone through."""

from collections.abc import Iterable

from shared.db.pending import Stand
from shared.db.subjects import SubjectKey
from shared.model.pending import Anchor

_Place = tuple[str, str, str, Anchor]


class Ledger:
    """Open rows by automation, subject and kind of anchor: of each there is one at most."""

    def __init__(self, stands: Iterable[Stand]) -> None:
        """Hold these rows."""
        self._stands: dict[_Place, Stand] = {}
        for stand in stands:
            self.put(stand)

    def find(self, automation_id: str, subject: SubjectKey, anchor: Anchor) -> Stand | None:
        """Give the open row, if there is one."""
        return self._stands.get((automation_id, subject[1], subject[2], anchor))

    def put(self, stand: Stand) -> None:
        """Hold a row, in the place of the one before."""
        self._stands[_place(stand)] = stand

    def drop(self, stand: Stand) -> None:
        """Let go of a row that is no longer open."""
        self._stands.pop(_place(stand), None)


def _place(stand: Stand) -> _Place:
    return stand.automation_id, stand.subject_type, stand.subject_id, stand.episode.anchor
