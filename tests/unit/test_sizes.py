"""What is shown of large documents."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.sizes import INPUT_SHOWN_BYTES, OUTPUT_SHOWN_BYTES, cut_for_show, cut_text, split_for_show

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


def size_of(document: object) -> int:
    return len(orjson.dumps(document))


def test_what_fits_is_shown_whole() -> None:
    document = {"type": "order.placed", "payload": {"note": "short"}}
    assert cut_for_show(document) == document


def test_what_has_just_the_limit_is_shown_whole() -> None:
    document = {"note": "x" * (INPUT_SHOWN_BYTES - size_of({"note": ""}))}
    assert cut_for_show(document) == document
    assert cut_for_show({"note": document["note"] + "x"})["truncated"] is True


@pytest.mark.parametrize("letter", ["x", "é", "€", "😀", "\\", "\x01"])
def test_a_long_text_is_cut_on_a_code_point_border(letter: str) -> None:
    text = "Zoë" + letter * 200_000
    shown = cut_for_show({"type": "order.placed", "note": text})
    assert shown["truncated"] is True
    assert shown["type"] == "order.placed"
    assert text.startswith(shown["note"])
    assert size_of(shown) <= INPUT_SHOWN_BYTES


def test_as_much_as_half_of_the_limit_is_kept_of_one_long_text() -> None:
    shown = cut_for_show({"note": "x" * 200_000}, OUTPUT_SHOWN_BYTES)
    assert OUTPUT_SHOWN_BYTES // 2 <= size_of(shown) <= OUTPUT_SHOWN_BYTES


def test_many_short_texts_become_a_preview_of_the_json_text() -> None:
    document = {"rows": ["a" * 20] * 9_000}
    shown = cut_for_show(document)
    assert shown["truncated"] is True
    assert orjson.dumps(document).decode().startswith(shown["preview"])
    assert INPUT_SHOWN_BYTES // 4 < size_of(shown) <= INPUT_SHOWN_BYTES


def test_a_preview_full_of_quotes_keeps_the_limit() -> None:
    assert size_of(cut_for_show({'"' * 60_000: "\\" * 10})) <= INPUT_SHOWN_BYTES


def deep(levels: int) -> dict[str, object]:
    tree: dict[str, object] = {}
    for _ in range(levels):
        tree = {"a": tree}
    return tree


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ({"body": "a\x00b"}, {"body": "a\ufffdb", "sanitized": True}),
        ({"body": ["\ud83d"]}, {"body": ["\ufffd"], "sanitized": True}),
        ({"body": "\\u0000"}, {"body": "\\u0000"}),
        ({"n": 2**70}, {"preview": "{'n': 1180591620717411303424}", "sanitized": True}),
    ],
)
def test_what_no_database_can_hold_is_replaced(document: dict[str, object], shown: dict[str, object]) -> None:
    assert cut_for_show(document) == shown


def test_a_document_may_be_both_cut_and_mended() -> None:
    marks = {"truncated": True, "sanitized": True}
    assert cut_for_show({"body": "a\x00b" * 90_000}).items() >= marks.items()
    assert cut_for_show({"rows": ["a\x00b"] * 30_000}).items() >= marks.items()


@pytest.mark.parametrize("levels", [100, 300, 900, 50_000])
def test_no_depth_can_hurt(levels: int) -> None:
    assert size_of(cut_for_show(deep(levels), 1_000)) <= 1_000


@given(document=st.dictionaries(st.text(max_size=9), JSON), limit=st.integers(100, 400))
def test_nothing_shown_is_larger_than_the_limit(document: dict[str, object], limit: int) -> None:
    shown = cut_for_show(document, limit)
    assert size_of(shown) <= limit
    assert shown == document or True in (shown.get("truncated"), shown.get("sanitized"))
    assert "\x00" not in str(shown)


@given(text=st.text(), limit=st.integers(0, 60))
def test_a_cut_text_is_a_beginning_that_fits(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert text.startswith(cut)
    assert len(cut.encode()) <= limit
    assert len(cut.encode()) > limit - 4 or cut == text


def test_a_document_is_kept_whole_only_where_less_of_it_is_shown() -> None:
    small, large = {"a": 1}, {"a": "x" * INPUT_SHOWN_BYTES}
    assert split_for_show(small) == (small, None)
    shown, whole = split_for_show(large)
    assert shown["truncated"] is True
    assert whole is large
