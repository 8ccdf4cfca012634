"""What must never be shown: values under telling names, and what a URL hides in its userinfo and its query.

`mask_tree` is for data (the run log, what a run got and gave); `mask_definition` is for what an author wrote,
where every header value and every query value counts as a secret.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote_plus

MASK: Final = "***"
SCHEMES: Final = r"(?:bearer|basic|token|api-?key|digest|jwt|key|oauth|bot)"  # words that tell nothing

_TELLING: Final = re.compile(
    r"(?:^|[_.\- ])(?:"
    r"auth(?:orization|entication|enticate)?\d*|password\d*|passwd\d*|pwd|pass|passphrase|passcode|pin_?code"
    r"|secret\d*|token\d*|cookie\d*|credentials?|signature|sig|hmac|session_?id|jwt|bearer|otp"
    r"|(?:api|access|private|subscription|signing|encryption|master|shared|service|account|secret|auth)"
    r"[_.\- ]?key\d*"
    r")(?:$|[_.\- ])"
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PORT: Final = r"\d{1,5}(?![^\s/?#\"'<>,;)\]}])"
_USERINFO: Final = re.compile(
    r"(?<=[A-Za-z0-9+.\-])://(?:"
    r"[^\s/?#]{0,2000}@"  # nothing odd in it
    rf"|[^\s/?#@:\[\"]{{0,200}}:(?!{_PORT})[^@\n\"]{{1,1000}}@(?:[^\s/?#@]{{0,1000}}@)*"  # / ? # or a blank
    r"|:[^\s@\"]{1,1000}@"  # no user, so that no port can stand here
    r"|(?<!http://)(?<!https://)[^\s/?#@:\[\"]{1,200}:\d{1,5}[/?#][^\s@\"]{1,1000}@"
    r")"
)
_CHARS: Final = r"\{\{.{0,500}?\}\}"  # a template, whatever stands in it, or
_URL_TAIL: Final = re.compile(rf"(?<=[A-Za-z0-9+.\-]://)(?:{_CHARS}|[^\s\"<>])+")
_PAIR: Final = re.compile(rf"(?P<name>[?&;#][^=&;#?\s]{{1,200}}=)(?P<value>(?:{_CHARS}|[^&;#\s])+)")
_BARE: Final = re.compile(r"(?P<mark>[?&;])[^=&;#?\s{}]+(?=[&;#]|$)")
_JSON_PAIR: Final = re.compile(
    r'(?P<name>"[A-Za-z0-9_.\- ]{1,100}"\s{0,9}:\s{0,9})(?:"(?:[^"\\]|\\.)*+"?|[^\s",\]}\[{][^\s,\]}]*)'
)
_BEARER: Final = re.compile(
    r"\b(?P<kind>[Bb]earer|[Bb]asic) (?=\S*(?:\d|[a-z][A-Z]|=))[A-Za-z0-9+/=._~\-]{8,}"
)
_TEMPLATE: Final = re.compile(rf"(?:{SCHEMES} +(?:token=)?)?(?:\{{\{{[^{{}}\"']*\}}\}})+", re.IGNORECASE)
_MASKED: Final = re.compile(
    r"://[^\s/?#@]*\*\*\*[^\s/?#@]*@|[?&;#][^=&;#?\s]*(?:=|(?<=[?&;]))\*\*\*(?:[&;#\s\"<>]|$)"
    r'|\b(?:Bearer|Basic) \*\*\*|":\s*"\*\*\*"',
    re.IGNORECASE,
)
_QUERY_NAMES: Final = frozenset({"key", "code"})
_LEAF_VALUES: Final = ("value", "wanted", "found")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a secret: `api_key`, `clientSecret`, `X-Auth`; not `tokens`."""
    return _TELLING.search(_HUMP.sub("_", name).lower()) is not None


def mask_tree(tree: Any) -> Any:
    """Give a JSON tree as it may be shown: nothing under telling names, no secret in a URL.

    What a condition wants and finds goes by the name of its field.
    """
    match tree:
        case str():
            return mask_text(tree)
        case Mapping():
            hidden = _hidden_of_leaf(tree)
            return {
                key: MASK if _is_hidden(key, each, hidden) else mask_tree(each) for key, each in tree.items()
            }
        case list() | tuple():
            return [mask_tree(each) for each in tree]
    return tree


def mask_definition(tree: Any) -> Any:
    """Give a definition, or a part of it, as it may be shown; what is a template alone stays."""
    match tree:
        case str():
            return _URL_TAIL.sub(lambda tail: _mask_every_value(tail[0]), mask_text(tree))
        case Mapping():
            hidden = _hidden_of_leaf(tree)
            return {key: _mask_key(str(key), each, hidden) for key, each in tree.items()}
        case list() | tuple():
            return [mask_definition(each) for each in tree]
    return tree


def is_masked(text: str) -> bool:
    """Tell whether a text shows the mask where a secret stood: alone, or in a URL's userinfo or query."""
    return text.strip() == MASK or (MASK in text and _MASKED.search(text) is not None)


def mask_text(text: str) -> str:
    """Mask what a text shows of secrets: in its URLs, after `Bearer`, and in JSON that stands in it."""
    text = mask_urls(text)
    if '":' in text or '" :' in text:
        text = _JSON_PAIR.sub(_mask_json_pair, text)
    return _BEARER.sub(rf"\g<kind> {MASK}", text) if "earer " in text or "asic " in text else text


def mask_urls(text: str) -> str:
    """Mask user, password and secret query values of every URL, also a password that should be encoded."""
    if "://" not in text:
        return text
    return _URL_TAIL.sub(_mask_secret_pairs, _USERINFO.sub(f"://{MASK}@", text))


def _is_hidden(key: Any, value: Any, hidden: tuple[str, ...]) -> bool:
    return value is not None and (key in hidden or is_secret_name(str(key)))


def _mask_key(key: str, value: Any, hidden: tuple[str, ...]) -> Any:
    if _is_hidden(key, value, hidden):
        return _mask_unless_template(value)
    if key == "url" and isinstance(value, str):
        return _mask_every_value(mask_text(value))
    if key == "headers" and isinstance(value, Mapping):
        return {name: _mask_unless_template(each) for name, each in value.items()}
    return mask_definition(value)


def _mask_unless_template(value: Any) -> Any:
    return value if isinstance(value, str) and _TEMPLATE.fullmatch(value) else MASK


def _mask_secret_pairs(tail: re.Match[str]) -> str:
    return _PAIR.sub(_mask_secret_pair, tail[0]) if "=" in tail[0] else tail[0]


def _mask_secret_pair(pair: re.Match[str]) -> str:
    name = unquote_plus(pair["name"][1:-1])
    return _mask_pair(pair) if is_secret_name(name) or name.lower() in _QUERY_NAMES else pair[0]


def _mask_every_value(url: str) -> str:
    return _BARE.sub(rf"\g<mark>{MASK}", _PAIR.sub(_mask_pair, url))


def _mask_pair(pair: re.Match[str]) -> str:
    return f"{pair['name']}{_mask_unless_template(pair['value'])}"


def _mask_json_pair(pair: re.Match[str]) -> str:
    name = pair["name"]
    return f'{name}"{MASK}"' if is_secret_name(name[1 : name.rindex('"')]) else pair[0]


def _hidden_of_leaf(tree: Mapping[Any, Any]) -> tuple[str, ...]:
    """Name the keys that hold what a condition's leaf compares, if its field is one that tells a secret."""
    field = tree.get("field")
    if not isinstance(field, str) or "op" not in tree:
        return ()
    return _LEAF_VALUES if any(is_secret_name(step) for step in field.split(".")) else ()
