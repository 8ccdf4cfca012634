"""Names that a person gives: what may stand in them."""

import pytest

from shared.model.names import check_name


@pytest.mark.parametrize("name", ["a", "Großer Auftrag", "受注", "👨‍👩‍👧 families", "a" * 200, "مرحبا"])
def test_what_can_be_read_is_a_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", " ", "\u00a0\u3000", "\u200b", "\u3164", "\u200d\ufe0f"])
def test_a_blank_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="must not be blank"):
        check_name(name)


@pytest.mark.parametrize(
    "char",
    ["\n", "\r", "\t", "\x00", "\x7f", "\x85", "\x9b", "\u2028", "\u202e", "\u2066", "\u200f", "\ufeff"],
)
def test_a_control_character_is_named_by_its_number(char: str) -> None:
    with pytest.raises(ValueError, match=rf"^holds U\+{ord(char):04X}, "):
        check_name(f"a{char}b")


def test_a_name_has_at_most_200_characters() -> None:
    with pytest.raises(ValueError, match="at most 200 characters"):
        check_name("a" * 201)
