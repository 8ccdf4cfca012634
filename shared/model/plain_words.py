"""What pydantic found wrong, in our own words. Every text that tells of a value it refused is made here.

The words follow the name of what they are about (`retries: must be at least 0`) and never show the value.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import ErrorDetails

_TEXTS: Final[Mapping[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "is unknown",
    "string_type": "must be text",
    "string_pattern_mismatch": "holds characters that are not allowed here",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "path_type": "must be a path",
    "none_required": "must be null",
    "invalid-json-value": "is nothing that JSON has",
}
_BOUNDS: Final[Mapping[str, str]] = {
    "greater_than_equal": "must be at least {ge:.15g}",
    "greater_than": "must be more than {gt:.15g}",
    "less_than_equal": "must be at most {le:.15g}",
    "less_than": "must be less than {lt:.15g}",
}
_OTHER: Final = "cannot be used"


def words_for(details: ErrorDetails) -> str:
    """Say what is wrong with a value that a model refused; the details need their context."""
    kind = details["type"]
    context = details.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, ValueError):
        return str(cause)
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**context)
    make = _COUNTED.get(kind)
    return make(context) if make is not None else _TEXTS.get(kind, _OTHER)


def _too_short(context: Mapping[str, Any]) -> str:
    least = context["min_length"]
    return "must not be empty" if least == 1 else f"must have at least {least} characters"


def _too_few(context: Mapping[str, Any]) -> str:
    least = context["min_length"]
    return "must not be empty" if least == 1 else f"must have at least {least} entries"


_COUNTED: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "string_too_short": _too_short,
    "string_too_long": lambda context: f"must have at most {context['max_length']} characters",
    "too_short": _too_few,
    "too_long": lambda context: f"must have at most {context['max_length']} entries",
    "enum": lambda context: f"must be one of {_choices(context)}",
    "literal_error": lambda context: f"must be one of {_choices(context)}",
}


def _choices(context: Mapping[str, Any]) -> str:
    return str(context.get("expected", "")).replace("'", "").replace(" or ", ", ")
