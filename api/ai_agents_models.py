"""How AI agents are written and shown."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from api.openapi import SCHEMA
from shared.db.ai_agents import AgentRow
from shared.model.channels import GIVEN_ID
from shared.model.names import NAME_MAX, check_name
from shared.rules.idle_rules import NO_OBJECT, idle_rule_of, legacy_fault
from shared.rules.values import object_of

RESERVED: Final = "summary"

STEPS: Final[list[dict[str, Any]]] = [
    {"order": 1, "action": "follow_up", "duration": 600, "message": "Are you still there?"},
    {
        "order": 2,
        "action": "assign",
        "duration": 600,
        "assign": {"type": "division", "division": {"id": "support", "name": "Support"}},
    },
    {"order": 3, "action": "resolve", "duration": 600, "message": "Closing for now."},
]
LEGACY: Final[dict[str, Any]] = {
    "action": "follow_up",
    "follow_up": {"duration": 600, "message": "Are you still there?"},
}

NEW_EXAMPLES: Final[dict[str, Any]] = {
    "steps": {"value": {"id": "nora", "name": "Nora", "profile": {"idle_rule": {"steps": STEPS}}}},
    "one action": {"value": {"name": "Nora", "profile": {"tone": "kind", "idle_rule": LEGACY}}},
}
CHANGE_EXAMPLES: Final[dict[str, Any]] = {
    "rename": {"value": {"name": "Nina"}},
    "another rule": {"value": {"profile": {"idle_rule": {"steps": STEPS[:1]}}}},
}
INVALID_STEPS: Final[dict[int | str, dict[str, Any]]] = {
    422: {
        "description": "A field is wrong; of steps `details` name the step, from 0 on, and its field.",
        "content": {
            "application/json": {
                "schema": {"$ref": SCHEMA},
                "examples": {
                    "steps": {
                        "value": {
                            "error": "IDLE_RULE_STEPS_INVALID",
                            "message": "steps[1].message is required for action resolve",
                            "details": {"index": 1, "field": "message"},
                        }
                    },
                    "flag": {
                        "value": {
                            "error": "IDLE_RULE_STEPS_NOT_ENABLED",
                            "message": "sequential idle steps are not enabled for this workspace",
                            "details": {"field": "steps"},
                        }
                    },
                },
            }
        },
    }
}


def _check_free(id_: str) -> str:
    if id_ == RESERVED:
        raise ValueError("is the name of a list")
    return id_


AgentName = Annotated[str, AfterValidator(check_name)]
AgentIdIn = Annotated[str, AfterValidator(_check_free)]


class ProfileIn(BaseModel):
    """What an agent is like; keys that nothing here reads are kept as they are."""

    model_config = ConfigDict(extra="allow")

    idle_rule: dict[str, Any] | None = Field(
        default=None,
        description="What happens when the contact goes quiet: `steps`, or one action with its own key.",
        examples=[{"steps": STEPS}, LEGACY],
    )


class ParametersIn(ProfileIn):
    """All that is kept of an agent; an `idle_rule` here counts where the profile has none."""

    profile: ProfileIn | None = None


class AgentChange(BaseModel):
    """What is to change; what is left out stays, a profile is replaced whole."""

    model_config = ConfigDict(extra="forbid")

    name: AgentName | None = Field(default=None, min_length=1, max_length=NAME_MAX, examples=["Nora"])
    profile: ProfileIn | None = Field(default=None, examples=[{"idle_rule": {"steps": STEPS}}])
    parameters: ParametersIn | None = Field(default=None, examples=[{"profile": {"idle_rule": LEGACY}}])

    @model_validator(mode="after")
    def _check_one_profile(self) -> Self:
        given = self.parameters is not None and "profile" in self.parameters.model_fields_set
        if given and "profile" in self.model_fields_set:
            raise ValueError("give profile, or parameters with a profile, not both")
        return self

    def keys(self) -> dict[str, Any]:
        """Give what was written of name, profile and parameters, as it came."""
        given = self.model_dump(include={"name", "profile", "parameters"}, exclude_unset=True)
        return {key: value for key, value in given.items() if key != "name" or value is not None}


class AgentIn(AgentChange):
    """An AI agent to be made."""

    id: AgentIdIn | None = Field(
        default=None,
        pattern=f"^{GIVEN_ID}$",
        description="The `agentId` that its messages carry; one is made where none is given.",
        examples=["nora"],
    )
    name: AgentName = Field(min_length=1, max_length=NAME_MAX, examples=["Nora"])


class Warned(BaseModel):
    """Something that was stored, and could never happen."""

    field: str
    message: str


class AgentOut(BaseModel):
    """An AI agent, as it was stored."""

    id: str
    name: str
    profile: Mapping[str, Any] | None
    parameters: Mapping[str, Any] = Field(description="All that is kept of it, the profile included.")
    warnings: list[Warned] = Field(
        description="What was stored that could never be carried out: parameters that are no object, or what"
        " the keys of a single action say."
    )
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: AgentRow) -> Self:
        """Show an agent."""
        parameters = object_of(row.parameters)
        profile = parameters.get("profile")
        return cls(
            id=row.id,
            name=row.name,
            profile=profile if isinstance(profile, Mapping) else None,
            parameters=parameters,
            warnings=_warnings(row),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class SummaryProfile(BaseModel):
    """The rule that counts: the profile's, else the one beside it."""

    idle_rule: Mapping[str, Any] | None


class AgentSummary(BaseModel):
    """An AI agent in short."""

    id: str
    name: str
    profile: SummaryProfile
    warnings: list[Warned]
    updated_at: datetime

    @classmethod
    def of(cls, row: AgentRow) -> Self:
        """Show an agent in short."""
        rule = SummaryProfile(idle_rule=idle_rule_of(object_of(row.parameters)))
        return cls(id=row.id, name=row.name, profile=rule, warnings=_warnings(row), updated_at=row.updated_at)


def _warnings(row: AgentRow) -> list[Warned]:
    if not isinstance(row.parameters, Mapping):
        return [Warned(field="parameters", message=NO_OBJECT)]
    rule = idle_rule_of(row.parameters)
    fault = None if rule is None else legacy_fault(rule)
    return [] if fault is None else [Warned(field=f"idle_rule.{fault.path}", message=fault.reason)]
