"""What must never be shown: values under telling names, and the name and password inside a URL."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

MASK: Final = "***"

_TELLING: Final = re.compile(
    r"(?:^|[_.\-])(?:authorization|password|passwd|secret|token|cookie|api[_.\-]?key)(?:$|[_.\-])"
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USERINFO: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*://)[^\s/?#]*@")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a secret: `api_key`, `clientSecret`; not `tokens`."""
    return _TELLING.search(_HUMP.sub("_", name).lower()) is not None


def mask_tree(tree: Any) -> Any:
    """Give a JSON tree as it may be shown: nothing under telling names, no user or password in a URL."""
    match tree:
        case str():
            return mask_userinfo(tree)
        case Mapping():
            return {
                key: MASK if is_secret_name(str(key)) and each is not None else mask_tree(each)
                for key, each in tree.items()
            }
        case list() | tuple():
            return [mask_tree(each) for each in tree]
    return tree


def mask_userinfo(text: str) -> str:
    """Replace the user and password of every URL in `text`."""
    return _USERINFO.sub(rf"\g<scheme>{MASK}@", text) if "://" in text else text
