"""Trees keep their types, JSON texts stay JSON, and a config is checked again once it is rendered."""

import json
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from shared.errors import FatalError
from shared.rules.rendering import RenderedConfig, render_config, render_json_text, render_tree

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)


class Call(BaseModel):
    """A config such as actions have."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    template_free: ClassVar[frozenset[str]] = frozenset({"method"})
    null_written: ClassVar[frozenset[str]] = frozenset()
    json_text: ClassVar[frozenset[str]] = frozenset({"body"})
    html_text: ClassVar[frozenset[str]] = frozenset({"page"})

    url: str
    method: str = "POST"
    kind: str = "application/json"
    headers: dict[str, str] = {}
    body: JsonValue = None
    page: str = ""
    limit: Annotated[int, Field(ge=1)] = 1

    def renders_as_json(self) -> bool:
        """Tell by the content type."""
        return self.kind == "application/json"


class Note(BaseModel):
    """A config that says nothing of how it is rendered."""

    text: Annotated[str, BeforeValidator(lambda value: "" if value is None else value), Field(max_length=12)]
    parts: tuple[str, ...] = ()


def test_a_tree_is_rendered_leaf_by_leaf() -> None:
    tree = {
        "id": "{{ c.id }}",
        "n": ["{{ n }}", "no {{ n }}", 5, None, True],
        "{{ key }}": {"deep": "{{ list }}"},
    }
    rendered = render_tree(tree, {"c": {"id": 7}, "n": 0, "list": [1, {"a": None}]})
    assert rendered.value == {
        "id": 7,
        "n": [0, "no 0", 5, None, True],
        "{{ key }}": {"deep": [1, {"a": None}]},
    }
    assert rendered.missing == ()


def test_a_tree_reports_each_absent_path_once() -> None:
    rendered = render_tree(["{{ a }}", "{{ b }} {{ a }}", "x"], {})
    assert rendered.value == [None, " ", "x"]
    assert rendered.missing == ("a", "b")


def test_a_tree_that_is_too_deep_fails() -> None:
    tree: object = "x"
    for _ in range(100):
        tree = [tree]
    with pytest.raises(FatalError, match="TEMPLATE_ERROR"):
        render_tree(tree, {})


def test_a_tree_shares_one_bound_on_its_output_and_its_work() -> None:
    with pytest.raises(FatalError, match="too much text"):
        render_tree(["{{ big }}"] * 20, {"big": "x" * 100_000})
    with pytest.raises(FatalError, match="too much work"):
        render_tree(["{% for i in (1..2000) %}{% endfor %}"] * 100, {})


@pytest.mark.parametrize(
    ("template", "scope", "expected"),
    [
        ('{"name":"{{ name }}"}', {"name": 'He said "hi"\nbye'}, {"name": 'He said "hi"\nbye'}),
        ('{"name":{{ name }}}', {"name": 'He said "hi"\nbye'}, {"name": 'He said "hi"\nbye'}),
        ('{"n":{{ n }}}', {"n": 0}, {"n": 0}),
        ('{"n":{{ n }}}', {"n": False}, {"n": False}),
        ('{"n":{{ n }}}', {"n": None}, {"n": None}),
        ('{"n":{{ n }}}', {}, {"n": None}),
        ('{"n":{{ n }}}', {"n": [1, {"a": "\\"}]}, {"n": [1, {"a": "\\"}]}),
        ('{"n":"{{ n }}"}', {"n": 0}, {"n": "0"}),
        ('{"n":"{{ n }}"}', {"n": None}, {"n": ""}),
        ('{"n":"a{{ n }}z"}', {}, {"n": "az"}),
        ('{"n":"{{ n }}"}', {"n": {"a": '"'}}, {"n": '{"a": "\\""}'}),
        ('{"a\\"b":"{{ n }}","c\\\\":{{ n }}}', {"n": '"'}, {'a"b': '"', "c\\": '"'}),
        ('{"n":{{ n | json }}}', {"n": ["x"]}, {"n": ["x"]}),
        ('{"n":"{{ n | json }}"}', {"n": ["x"]}, {"n": '["x"]'}),
        ('{"n":{{ n | upcase }}}', {"n": 'a"b'}, {"n": 'A"B'}),
        (
            "[{% for i in n %}{{ i }}{% unless forloop.last %},{% endunless %}{% endfor %}]",
            {"n": ["a", 1]},
            ["a", 1],
        ),
        (
            '{% capture c %}"{{ n }}{% endcapture %}{"c":"{{ c }}","d":{{ c }}}',
            {"n": "x"},
            {"c": '"x', "d": '"x'},
        ),
        ("{{ n }}", {"n": {"a": [None]}}, {"a": [None]}),
        ('{"plain": 1}', {}, {"plain": 1}),
    ],
)
def test_a_json_text_stays_json(template: str, scope: dict[str, Any], expected: object) -> None:
    rendered = render_json_text(template, scope)
    assert isinstance(rendered.value, str)
    assert json.loads(rendered.value) == expected


def test_a_json_text_reports_absent_paths() -> None:
    assert render_json_text('{"a":{{ a.b }}}', {}).missing == ("a.b",)


@pytest.mark.parametrize(
    "template",
    [
        "",
        "text",
        '{"a":{{ n }}x}',
        '{"a":"\\{{ n }}"}',
        '{"a":{{ n }}',
        "NaN",
        '{"a":-Infinity}',
        "[" * 5_000,
        "{{ n",
    ],
)
def test_what_is_no_json_fails_before_it_is_sent(template: str) -> None:
    with pytest.raises(FatalError) as caught:
        render_json_text(template, {"n": 1})
    assert caught.value.code == "TEMPLATE_ERROR"


@settings(deadline=None)
@given(value=JSON)
def test_no_value_breaks_out_of_a_json_text(value: object) -> None:
    rendered = render_json_text('{"in":"<{{ v }}>","out":{{ v }},"end":1}', {"v": value})
    parsed = json.loads(rendered.text)
    assert parsed.keys() == {"in", "out", "end"}
    assert parsed["out"] == value
    if isinstance(value, str):
        assert parsed["in"] == f"<{value}>"


def test_a_config_is_rendered_into_its_own_type() -> None:
    config = Call(
        url="https://x.test/{{ id }}", method="{{ id }}", headers={"X-A": "{{ a }}"}, body={"n": "{{ n }}"}
    )
    rendered = render_config(config, {"id": "7", "n": 5, "a": "b"})
    expected = Call(url="https://x.test/7", method="{{ id }}", headers={"X-A": "b"}, body={"n": 5})
    assert rendered == RenderedConfig(expected, ())
    assert rendered.config.model_fields_set == {"url", "method", "headers", "body"}


def test_a_text_body_is_json_text_only_where_the_config_says_so() -> None:
    scope = {"q": 'a"b'}
    as_json = render_config(Call(url="u", body='{"q":"{{ q }}"}'), scope)
    as_text = render_config(Call(url="u", body="q={{ q }} {{ z }}", kind="text/plain"), scope)
    assert as_json.config.body == '{"q":"a\\"b"}'
    assert as_text.config.body == 'q=a"b '
    assert as_text.missing == ("z",)


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<b>{{ name }}</b>", "<b>&lt;i&gt;A &amp; &quot;B&quot;&lt;/i&gt;</b>"),
        ("{{ name }}", "&lt;i&gt;A &amp; &quot;B&quot;&lt;/i&gt;"),
        ("{{ name | append: '<br>' | upcase }}", "&lt;I&gt;A &amp; &quot;B&quot;&lt;/I&gt;&lt;BR&gt;"),
        ("{% capture c %}{{ name }}{% endcapture %}{{ c }}", "&lt;i&gt;A &amp; &quot;B&quot;&lt;/i&gt;"),
        ("{{ gone }}<br>", "<br>"),
    ],
)
def test_no_value_becomes_markup_in_an_html_text(page: str, shown: str) -> None:
    rendered = render_config(Call(url="u", page=page), {"name": '<i>A & "B"</i>'})
    assert rendered.config.page == shown
    assert rendered.missing == (("gone",) if "gone" in page else ())


def test_a_broken_json_body_fails_as_a_template() -> None:
    with pytest.raises(FatalError, match="TEMPLATE_ERROR"):
        render_config(Call(url="u", body="{{ q }} and more"), {"q": "x"})


def test_a_config_that_says_nothing_is_rendered_whole() -> None:
    rendered = render_config(Note(text="{{ absent }}", parts=("{{ a }}", "b")), {"a": "x"})
    assert rendered == RenderedConfig(Note(text="", parts=("x", "b")), ("absent",))


def test_what_the_model_refuses_is_told_by_path_and_without_the_value() -> None:
    with pytest.raises(FatalError) as caught:
        render_config(Note(text="{{ a }}", parts=("{{ b }}",)), {"a": "tok-7Q-secret", "b": ["tok-7Q"]})
    assert caught.value.code == "CONFIG_INVALID"
    assert "text: " in caught.value.message
    assert "parts[0]: must be text" in caught.value.message
    assert not any(word in caught.value.message for word in ("Input should", "Value error", "should have"))
    assert "tok-7Q" not in str(caught.value)


@settings(deadline=None)
@given(value=JSON)
def test_a_rendered_tree_is_the_value_itself(value: object) -> None:
    assert render_tree({"v": "{{ v }}"}, {"v": value}).value == {"v": value}
