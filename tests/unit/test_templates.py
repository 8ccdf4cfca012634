"""Templates see plain JSON and nothing else, and end soon whatever they are."""

import json
import time
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import FatalError
from shared.rules.templates import Rendered, check_template, has_template, render_text

SCOPE: dict[str, Any] = {
    "first": "Jane",
    "middle": None,
    "n": 0,
    "yes": True,
    "price": 9.5,
    "huge": 1e308,
    "tags": ["a", "b"],
    "order": {"id": "o1", "size": "XL"},
    "items": [{"name": "A"}, {"name": "B"}],
    "actions": {"1": {"output": {"id": "r1"}}},
    "now": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "big": "&" * 200_000,
    "many": list(range(2_001)),
}


def text(template: str) -> str:
    return render_text(template, SCOPE).text


def failure(template: str) -> str:
    with pytest.raises(FatalError) as caught:
        render_text(template, SCOPE)
    assert caught.value.code == "TEMPLATE_ERROR"
    return caught.value.message


def attempt(template: str, scope: dict[str, Any]) -> Rendered | str:
    """Render, or give the code that it fails with."""
    try:
        return render_text(template, scope)
    except FatalError as error:
        return error.code


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain } text { %", "plain } text { %"),
        ("Hi {{ first }} {{ middle }}!", "Hi Jane !"),
        ("Hi {{ first }} {{ absent }}!", "Hi Jane !"),
        ("{{ first }}/{{ n }}/{{ yes }}/{{ price }}", "Jane/0/true/9.5"),
        ("{{ order.id }} {{ items[1].name }} {{ items.0.name }}", "o1 B A"),
        ("{{ actions.1.output.id }}!", "r1!"),
        ("{{ tags }} {{ order }}", '["a", "b"] {"id": "o1", "size": "XL"}'),
        ("{{ tags.size }} {{ tags.first }} {{ tags.last }} {{ first.size }} {{ order.size }}", "2 a b 4 XL"),
        ("at {{ now }}", "at 2026-01-02T03:04:05Z"),
        ("{{ now | date: '%d.%m.%Y' }}", "02.01.2026"),
        ("{{ absent | default: 'friend' }}", "friend"),
        ("{{ first | upcase | append: middle | append: tags }}", 'JANE["a", "b"]'),
        ("{{ items | map: 'name' | join: ', ' }}", "A, B"),
        ("{{ tags | json }}", '["a", "b"]'),
        ("{{ n | plus: 2 | times: 3 }}", "6"),
        ("{% for i in items %}{{ i.name }}{% unless forloop.last %}, {% endunless %}{% endfor %}", "A, B"),
        ("{% for i in (1..3) %}{{ i }}{% endfor %}", "123"),
        ("{% if absent %}a{% elsif yes %}b{% else %}c{% endif %}", "b"),
        ("{% case n %}{% when 0 %}zero{% else %}more{% endcase %}", "zero"),
        ("{% assign x = first | downcase %}{% capture y %}<{{ x }}>{% endcapture %}{{ y }}", "<jane>"),
        ("{%- comment -%} {{ nothing }} {%- endcomment -%} x", "x"),
    ],
)
def test_what_is_rendered(template: str, expected: str) -> None:
    assert check_template(template) is None
    assert text(template) == expected


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ n }}", 0),
        ("{{yes}}", True),
        ("{{- price -}}", 9.5),
        ("{{ middle }}", None),
        ("{{ tags }}", ["a", "b"]),
        ("{{ order }}", {"id": "o1", "size": "XL"}),
        ("{{ first }}", "Jane"),
        ("{{ items[0].name }}", "A"),
        ("{{ now }}", "2026-01-02T03:04:05Z"),
        (" {{ n }}", " 0"),
        ("{{ n }}{{ n }}", "00"),
        ("{{ n | plus: 1 }}", "1"),
    ],
)
def test_one_path_alone_keeps_its_type(template: str, value: object) -> None:
    rendered = render_text(template, SCOPE)
    assert rendered == Rendered(value)
    assert type(rendered.value) is type(value)


def test_a_frozen_scope_gives_plain_json() -> None:
    rendered = render_text("{{ o }}", MappingProxyType({"o": MappingProxyType({"t": (1, 2)})}))
    assert rendered.value == {"t": (1, 2)}
    assert type(rendered.value) is dict


@pytest.mark.parametrize(
    ("template", "missing"),
    [
        ("{{ order.nope }}", ("order.nope",)),
        ("{{ a }} {{ b.c }} {{ a }} {{ first }} {{ middle }}", ("a", "b.c")),
        ("{{ a | upcase }}", ("a",)),
        ("{{ first | append: a }}", ("a",)),
        ("{% for x in a.list %}{{ x }}{% endfor %}", ("a.list",)),
        ("{% assign x = a %}{{ x }}", ("a",)),
        ("{{ items.7.name }}", ("items.7.name",)),
        ("{{ a | default: 'x' }}", ()),
        ("{% if a %}{{ a }}{% endif %}", ()),
    ],
)
def test_absent_paths_are_reported(template: str, missing: tuple[str, ...]) -> None:
    assert render_text(template, SCOPE).missing == missing


@pytest.mark.parametrize(
    "template",
    [
        "{{ first.__class__ }}",
        "{{ first['__class__'] }}",
        "{{ tags.append }}",
        "{{ order.items }}",
        "{{ order.keys }}",
        "{{ now.year }}",
        "{{ now.tzinfo }}",
        "{{ n.real }}",
        "{{ today }}",
        "{{ self }}",
        "{{ forloop }}",
        "{{ partial }}",
    ],
)
def test_nothing_but_json_can_be_reached(template: str) -> None:
    rendered = render_text(template, SCOPE)
    assert rendered.value is None
    assert len(rendered.missing) == 1


def test_the_clock_cannot_be_read() -> None:
    assert render_text("{{ now }}", {}) == Rendered(None, ("now",))
    assert render_text("x{{ 'now' | date: '%Y' }}", {}).text == "xnow"


@pytest.mark.parametrize(
    "template",
    [
        "{{ x",
        "{{ x }",
        "{% if x %}",
        "{% if %}{% endif %}",
        "{% endif %}",
        "{% nothing %}",
        "{% include 'a' %}",
        "{% render 'a' %}",
        "{% raw %}x{% endraw %}",
        "{% liquid echo x %}",
        "{% tablerow x in y %}{% endtablerow %}",
        "{% increment x %}",
        "{%  %}",
        "{{ a | nothing }}",
        "{{ a | safe }}",
        "{{ a || b }}",
        "{{ ''.__class__ }}",
        "{% for i in (1..1000000000) %}x{% endfor %}",
        "{% for i in (1..1000000000) reversed %}x{% endfor %}",
        "{{ (1..1000000000) | join }}",
        "{{ " + " " * 60_000 + "}}",
        "{{ " + "a[" * 499 + "}}",
        "{% if a %}" * 50 + "{% endif %}" * 50,
        "{{ a }}" + "x" * 65_536,
        "{% raw %}" * 7_000,
        "{{" * 30_000,
    ],
)
def test_what_is_refused_when_it_is_saved(template: str) -> None:
    started = time.monotonic()
    assert check_template(template)
    assert failure(template) == check_template(template)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "template",
    [
        "{% assign n = 1000000000 %}{% for i in (1..n) reversed %}x{% endfor %}",
        "{% assign n = '1000000000' %}{% for i in (1..n) %}x{% endfor %}",
        "{% assign n = 1000000000 %}{{ (1..n) | join }}",
        "{% for i in many %}x{% endfor %}",
        "{% for i in (1..1500) %}{% for j in (1..1500) %}x{% endfor %}{% endfor %}",
        "{% for i in (1..2000) %}{% endfor %}" * 100,
        "{% for i in (1..2000) %}{{ big | upcase | size }}{% endfor %}",
        "{{ big }}{{ big }}",
        "{{ big | escape }}",
        "{{ big | replace: '&', big }}",
        "{{ big | replace: '', big }}",
        "{{ big | split: '' | join: big }}",
        "{% assign s = 'aaaaaaaaaa' %}{% for i in (1..100) %}{% assign s = s | append: s %}{% endfor %}",
        "{% assign s = 99 %}{% for i in (1..100) %}{% assign s = s | times: s %}{% endfor %}",
        "{% assign s = 'a' %}{% for i in (1..100) %}{% assign s = s | base64_encode %}{% endfor %}",
        "{% for i in (1..500) %}{% capture s %}{{ s }}{{ big }}{% endcapture %}{% endfor %}",
        "{{ now | date: '%1000000000d' }}",
        "{{ n | divided_by: 0 }}",
        "{{ price | times: huge | times: huge }}",
        "{{ 'inf' | plus: 1 }}",
        "{% break %}",
        "{% for i in items %}{{ forloop }}{% endfor %}",
        "{{ items | sort }}",
    ],
)
def test_what_fails_while_it_is_rendered_fails_soon(template: str) -> None:
    started = time.monotonic()
    assert failure(template)
    assert time.monotonic() - started < 5


LOOP = "{% for i in (1..2000) %}BODY{% endfor %}"
DEEP = [{"a": n, "b": "x" * 20} for n in range(2_000)]
HEAVY = {"text": "ab " * 80_000, "deep": DEEP, "twin": [dict(each) for each in DEEP], "words": ["w"] * 9_000}


@pytest.mark.parametrize(
    "body",
    [
        "{{ '' }}" * 2_000,
        "{% assign x = 1 %}" * 2_000,
        "{% if false %}{% endif %}" * 2_000,
        "{% unless true %}{% else %}{% endunless %}" * 1_000,
        "{% case i %}" + "{% when 0 %}" * 2_000 + "{% endcase %}",
        "{% for q in none %}{% endfor %}" * 1_000,
        "{% capture x %}{{ deep }}{% endcapture %}",
        "{% capture x %}" + "x" * 60_000 + "{% endcapture %}" + "{% assign x = 1 %}" * 20,
        "{% assign x = words | reverse | sort %}",
        "{% assign x = text | squish %}",
        "{% if deep == twin or deep == twin %}{% endif %}",
        "{% case deep %}" + "{% when twin %}" * 20 + "{% endcase %}",
        "{% if text contains 'z' or text contains 'y' %}{% endif %}",
        "{% if words contains 'z' or words contains 'y' %}{% endif %}",
    ],
    ids=lambda body: body[:30],
)
def test_no_statement_of_a_loop_is_free(body: str) -> None:
    started = time.process_time()
    with pytest.raises(FatalError, match="rendering takes too much work"):
        render_text(LOOP.replace("BODY", body), HEAVY)
    assert time.process_time() - started < 5


def test_a_long_loop_over_rows_is_within_the_budget() -> None:
    row = "{% if o.b != '' %}{{ o.a | plus: 1 }}: {{ o.b | upcase | truncate: 9 }}{% else %}-{% endif %}, "
    assert render_text("{% for o in deep %}" + row + "{% endfor %}", HEAVY).text.count(", ") == 2_000


def test_a_failure_does_not_quote_what_was_rendered() -> None:
    scope = {"secret": "tok-7Q", "n": 1}
    for template in (
        "{{ n | truncate: secret }}",
        "{{ n | divided_by: secret }}",
        "{{ n | slice: secret }}",
    ):
        with pytest.raises(FatalError) as caught:
            render_text(template, scope)
        assert "tok-7Q" not in str(caught.value)


def test_rendered_text_is_not_rendered_again() -> None:
    assert render_text("{{ a }}!", {"a": "{{ b }}", "b": "x"}).text == "{{ b }}!"


def test_no_render_sees_what_another_assigned() -> None:
    render_text("{% assign leak = 'x' %}{{ leak }}", {})
    assert render_text("{{ leak }}", {}).missing == ("leak",)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(value=JSON)
def test_a_value_comes_through_unchanged(value: object) -> None:
    assert render_text("{{ v }}", {"v": value}).value == value


@pytest.mark.parametrize("value", ["\r", "one\r\ntwo", "one\rtwo\n"])
def test_line_ends_inside_a_text_stay_as_they_are(value: str) -> None:
    assert render_text("<{{ v }}>", {"v": value}).text == f"<{value}>"
    assert render_text("{% capture c %}{{ v }}{% endcapture %}<{{ c }}>", {"v": value}).text == f"<{value}>"


@settings(deadline=None)
@given(value=JSON)
def test_a_text_never_shows_the_words_of_a_language(value: object) -> None:
    shown = render_text("<{{ v }}>", {"v": value}).text.removeprefix("<").removesuffix(">")
    match value:
        case None:
            assert shown == ""
        case str():
            assert shown == value
        case _:
            assert json.loads(shown) == value


@settings(deadline=None)
@given(template=st.text(alphabet="{}%|.ab'[]() 1-endifor", max_size=40), value=JSON)
def test_any_text_is_refused_or_rendered_or_fails_with_its_code(template: str, value: object) -> None:
    outcome = attempt(template, {"a": value, "b": {"a": value}})
    if isinstance(outcome, Rendered):
        assert check_template(template) is None
        assert has_template(template) or outcome.value == template
    else:
        assert outcome == "TEMPLATE_ERROR"
