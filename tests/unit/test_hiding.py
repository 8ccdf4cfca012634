"""What is hidden: a value in every spelling in which it may come back, and nothing else."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from pipeline.hidden import masked_effects
from shared.hiding import Hider
from shared.model.effects import Emit, Notify
from shared.model.roles import Role

VALUE = 'tok-7Q/a b"+é'
HIDER = Hider([VALUE])


@pytest.mark.parametrize(
    "spelled",
    [
        VALUE,
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        repr(VALUE)[1:-1],
        VALUE.replace('"', "&quot;"),
        base64.b64encode(VALUE.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    ],
)
def test_each_spelling_is_replaced(spelled: str) -> None:
    assert HIDER.text(f"before {spelled} after") == "before *** after"


def quoted(text: str) -> str:
    return json.dumps(text)[1:-1]


def as_php(text: str) -> str:
    return quoted(text).replace("/", "\\/")


def as_go(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("<", "\\u003c").replace("&", "\\u0026")


HARD = "P@ss\"w0<r'd\\x9/é&z"


@pytest.mark.parametrize(
    "spelled",
    [
        quoted(quoted(HARD)),
        quoted(quoted(quoted(HARD))),
        as_php(as_php(HARD)),
        as_php(json.dumps(HARD, ensure_ascii=False)[1:-1]),
        as_go(HARD),
        as_go(as_go(HARD)),
        quote(quote(HARD, safe=""), safe=""),
        quote_plus(quoted(HARD)),
        html.escape(quoted(HARD)),
        quoted(html.escape(HARD)),
        html.escape(HARD).replace("&#x27;", "&#39;"),
        base64.b64encode(quoted(HARD).encode()).decode().rstrip("="),
    ],
)
def test_what_was_escaped_twice_is_replaced(spelled: str) -> None:
    assert Hider([HARD]).text(f"before {spelled} after") == "before *** after"


def test_a_body_that_comes_back_as_a_string_shows_no_line_of_a_value() -> None:
    value = 'first "line" of it\nsecond "line" of it'
    sent = json.dumps({"key": value})
    hider = Hider([value])
    assert hider.text(json.dumps({"body": sent})) == json.dumps({"body": '{"key": "***"}'})
    assert hider.text(quoted(quoted('the "line": second "line" of it'))) == quoted(quoted('the "line": ***'))


@pytest.mark.parametrize("before", ["", "u", "us", "user"])
def test_base64_of_a_longer_text_shows_none_of_it(before: str) -> None:
    value = "opensesame-opensesame"
    coded = base64.b64encode(f"{before}:{value}:x".encode()).decode()
    shown = Hider([value]).text(coded)
    assert "***" in shown
    assert len(shown) < len(coded) - len(value)


def test_a_text_that_was_cut_within_a_value_shows_no_part_of_it() -> None:
    hider = Hider(["opensesame-0123456789"])
    assert hider.text("x opensesame-01234") == "x ***"
    assert hider.text("they said open") == "they said open"


def test_a_tree_is_replaced_leaf_by_leaf_and_key_by_key() -> None:
    tree = {"a": ["tok-7Q", 1, None, {"tok-7Q": True}], "status": 401}
    assert Hider(["tok-7Q"]).tree(tree) == {"a": ["***", 1, None, {"***": True}], "status": 401}


def test_the_longest_of_two_values_goes_first() -> None:
    assert Hider(["abcd", "abcdefgh"]).text("abcdefgh abcd") == "*** ***"


def test_values_of_fewer_than_four_characters_hide_nothing() -> None:
    hider = Hider(["pw", "123", ""])
    assert not hider.hides()
    assert hider.text("pw 123") == "pw 123"
    assert hider.tree({"a": "pw"}) == {"a": "pw"}


def test_each_line_of_a_long_value_is_hidden() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n"
    assert Hider([key]).text("said: MIIEvQIBADAN") == "said: ***"
    assert Hider([key]).text(json.dumps({"k": key})) == '{"k": "***"}'


def test_a_short_line_of_a_long_value_is_hidden_with_the_others_only() -> None:
    hider = Hider(["pin 12\nand a longer line"])
    assert hider.text("pin 12, and a longer line") == "pin 12, ***"
    assert hider.text("say pin 12\nand a longer line") == "say ***"


def test_the_path_of_a_secret_url_is_hidden_too() -> None:
    hider = Hider(["https://hooks.example/services/T0/B0/xyz"])
    assert hider.text("POST https://hooks.example/services/T0/B0/xyz answered 404") == "POST *** answered 404"
    assert hider.tree({"host": "hooks.example", "path": "/services/T0/B0/xyz"}) == {
        "host": "hooks.example",
        "path": "/***",
    }


def test_what_hides_nothing_stays_the_very_same() -> None:
    roles = (Role.OWNER, Role.ADMIN)
    assert all(isinstance(role, Role) for role in Hider(["opensesame"]).tree(roles))


def test_what_lies_too_deep_is_not_shown_at_all() -> None:
    tree: list[object] = ["opensesame"]
    for _ in range(5_000):
        tree = [tree]
    assert "opensesame" not in repr(flat(Hider(["opensesame"]).tree(tree)))


def flat(tree: object) -> object:
    while isinstance(tree, list):
        (tree,) = tree
    return tree


def test_effects_are_written_without_what_is_hidden() -> None:
    effects = (Emit("a.b", {"token": "opensesame"}), Notify("Got opensesame", "", ("owner",)))
    assert masked_effects(effects, Hider(["opensesame"])) == (
        Emit("a.b", {"token": "***"}),
        Notify("Got ***", "", ("owner",)),
    )
