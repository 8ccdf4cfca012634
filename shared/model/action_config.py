"""What the configurations of all action types share: their base, ids, and the checks that several make.

Text values may hold templates. A config is checked when it is saved and once more when its templates are
rendered, by the same model; so a check that the saved text cannot pass yet looks for the context RENDERED.
"""

import re
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, BeforeValidator, JsonValue, StringConstraints, ValidationInfo

from shared.model.parts import Part, Text
from shared.rules.rendering import RENDERED
from shared.rules.templates import has_template

ID_MAX: Final = 200
_SUBJECT_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*\Z")

Id = Annotated[Text, StringConstraints(min_length=1, max_length=ID_MAX)]
Properties = dict[str, JsonValue]


class ActionConfig(Part):
    """What one action type takes.

    `is_local`: it changes only our own tables. `template_free`: keys that are never rendered. `json_text`:
    text keys that are rendered as JSON text when `renders_as_json` says so. `html_text`: text keys in which
    each rendered value is escaped for HTML. `null_written`: keys whose null means something and has to be
    written; a template that gives nothing there is refused. `takes_secrets`: templates may ask for the
    workspace's secrets; what comes of it is masked before it is recorded.
    """

    is_local: ClassVar[bool] = False
    template_free: ClassVar[frozenset[str]] = frozenset()
    json_text: ClassVar[frozenset[str]] = frozenset()
    html_text: ClassVar[frozenset[str]] = frozenset()
    null_written: ClassVar[frozenset[str]] = frozenset()
    takes_secrets: ClassVar[bool] = False

    def renders_as_json(self) -> bool:
        """Tell whether the `json_text` keys hold JSON."""
        return False


class LocalConfig(ActionConfig):
    """What an action takes that changes only our own tables, and waits on nothing."""

    is_local: ClassVar[bool] = True


def _check_subject_type(name: str) -> str:
    if _SUBJECT_TYPE.match(name) is None and "{{" not in name:
        raise ValueError("must be a to z, 0 to 9 and _, with a letter in front")
    return name


class SubjectRef(Part):
    """Which subject is meant, when it is not a record."""

    type: Annotated[Text, StringConstraints(max_length=ID_MAX), AfterValidator(_check_subject_type)]
    id: Id


def is_final(text: str, info: ValidationInfo) -> bool:
    """Tell whether nothing of a text is left to be rendered, so that it can be checked for good."""
    return info.context == RENDERED or not has_template(text)


def refuse_null(value: object) -> object:
    """Refuse a key that is there but names nothing: it must not fall back to what an absent key means."""
    if value is None or value == "":
        raise ValueError("names nothing; leave the key out to use the default")
    return value


def _refuse_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Given = BeforeValidator(refuse_null)
Filled = Annotated[Text, AfterValidator(_refuse_blank)]
