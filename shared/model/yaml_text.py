"""YAML as authors expect it: only what JSON has too, so that `no`, `12:30` and `2026-01-01` stay text.

Version 1.2's plain values: true, false, null, decimal numbers. No merge keys, and a duplicate key is refused.
"""

import re
from collections.abc import Iterator
from typing import Final

import yaml

from shared.errors import DefinitionError, Fault

WHOLE: Final = "the whole file"
MAX_YAML_CHARS: Final = 1024 * 1024
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_TAG: Final = "tag:yaml.org,2002:"
_DIGITS: Final = "0123456789"
_PLAIN: Final = (
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), "tTfF"),
    ("null", re.compile(r"(?:~|null|Null|NULL|)\Z"), "~nN"),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"), f"-+{_DIGITS}"),
    (
        "float",
        re.compile(r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)\Z"),
        f"-+.{_DIGITS}",
    ),
)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {"": [(f"{_TAG}null", re.compile(r"\Z"))]}
    for name, pattern, first_characters in _PLAIN:
        for character in first_characters:
            table.setdefault(character, []).append((_TAG + name, pattern))
    return table


class _Loader(yaml.SafeLoader):
    """The safe loader with fewer surprises."""

    yaml_implicit_resolvers = _resolvers()

    def scan_flow_scalar(self, style: str) -> yaml.ScalarToken:
        """Join the halves of a character that JSON wrote as two escapes, as it writes an emoji."""
        token: yaml.ScalarToken = super().scan_flow_scalar(style)
        token.value = _PAIR.sub(_joined, token.value)
        return token


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


def read_yaml(text: str) -> object:
    """Read one YAML document. Raises DefinitionError with the line of the fault."""
    if len(text) > MAX_YAML_CHARS:
        raise DefinitionError([Fault(WHOLE, f"has more than {MAX_YAML_CHARS} characters")])
    try:
        return _construct(text)
    except yaml.YAMLError as error:
        raise DefinitionError([_fault(error)]) from error
    except (RecursionError, ValueError) as error:
        raise DefinitionError(
            [Fault(WHOLE, "is nested too deeply or holds a number that is too long")]
        ) from error


def _construct(text: str) -> object:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        faults = list(_key_faults(node))
        if faults:
            raise DefinitionError(faults)
        document: object = loader.construct_document(node)
    finally:
        loader.dispose()
    return document


def _key_faults(root: yaml.Node) -> Iterator[Fault]:
    """Find keys that are no plain text or stand twice in their mapping."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from _mapping_faults(node)
            waiting.extend(value for _, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)


def _mapping_faults(node: yaml.MappingNode) -> Iterator[Fault]:
    keys: set[str] = set()
    for key, _ in node.value:
        where = f"line {key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            yield Fault(where, "a key must be text")
        elif key.value in keys:
            yield Fault(where, f"the key {key.value!r} stands twice")
        else:
            keys.add(key.value)


def _fault(error: yaml.YAMLError) -> Fault:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return Fault(f"line {error.problem_mark.line + 1}", error.problem or "cannot be read")
    return Fault(WHOLE, f"is not YAML: {str(error).splitlines()[0]}")
