"""What every part of a definition has in common: frozen, closed to unknown keys, written back as it came."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from shared.rules.plain_text import as_text


class Part(BaseModel):
    """A frozen piece of a definition. It dumps the keys that were given, so a default stays one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    @model_serializer(mode="wrap")
    def _dump_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        given = {name for field in self.model_fields_set for name in (field, fields[field].alias)}
        return {name: value for name, value in handler(self).items() if name in given}


def counted(least: int, most: int) -> BeforeValidator:
    """Bound how many entries a list has, before any of them is looked at, so that this is the only fault."""

    def check(value: object) -> object:
        if isinstance(value, list | tuple) and not least <= len(value) <= most:
            raise ValueError(f"must have {least} to {most} entries, not {len(value)}")
        return value

    return BeforeValidator(check)


def _scalar_as_text(value: object) -> object:
    """Turn a number, a truth value or null into the text that a template would print."""
    return as_text(value) if value is None or isinstance(value, bool | int | float) else value


Text = Annotated[str, BeforeValidator(_scalar_as_text)]
