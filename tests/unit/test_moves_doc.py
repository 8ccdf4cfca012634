"""The diagram of a run's states in the documentation is the table of moves."""

import pytest

from shared.model.moves import MOVES
from tests.pages import page
from tools.moves_diagram import BEGIN, LABELS, draw, put_into


def test_the_page_has_the_diagram_of_the_table() -> None:
    text = page("architecture.md").text
    assert put_into(text) == text


def test_every_move_has_a_label_and_no_other() -> None:
    assert LABELS.keys() == {(origin, to) for origin, targets in MOVES.items() for to in targets}


def test_the_diagram_has_one_line_for_each_move() -> None:
    arrows = [line.strip() for line in draw().splitlines() if ": " in line]
    assert len(arrows) == len(set(arrows)) == sum(map(len, MOVES.values()))


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="the page has no"):
        put_into(BEGIN)
