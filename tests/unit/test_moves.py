"""The table of moves is the only judge of what may become of a run."""

from itertools import product

import pytest

from shared.errors import IllegalMove
from shared.model.moves import ENDED, MOVES, RunStatus, check_move

PAIRS = list(product(RunStatus, RunStatus))


@pytest.mark.parametrize(("stored", "to"), PAIRS)
def test_a_move_is_refused_exactly_where_the_table_has_no_edge(stored: RunStatus, to: RunStatus) -> None:
    if to in MOVES[stored]:
        check_move(stored, to)
    else:
        with pytest.raises(IllegalMove, match=f"{stored} -> {to}"):
            check_move(stored, to)


def test_the_edges_are_these() -> None:
    edges = {f"{stored} {to}" for stored, to in PAIRS if to in MOVES[stored]}
    assert edges == {
        "PENDING RUNNING",
        "PENDING CANCELLED",
        "RUNNING SUCCEEDED",
        "RUNNING FAILED",
        "RUNNING PENDING",
        "RUNNING DEAD_LETTER",
        "FAILED PENDING",
        "FAILED DEAD_LETTER",
        "DEAD_LETTER PENDING",
    }


def test_every_state_has_its_row_and_none_leads_to_itself() -> None:
    assert set(MOVES) == set(RunStatus)
    assert not any(status in MOVES[status] for status in RunStatus)


def test_only_a_replay_leads_out_of_an_end() -> None:
    for status in ENDED:
        assert MOVES[status] <= {RunStatus.PENDING, RunStatus.DEAD_LETTER}
    assert all(RunStatus.RUNNING not in MOVES[status] for status in ENDED)
