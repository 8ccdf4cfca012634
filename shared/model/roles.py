"""What the members of a workspace may do."""

from enum import StrEnum


class Role(StrEnum):
    """What a member of a workspace may do, strongest first."""

    OWNER = "owner"
    ADMIN = "admin"
    AUTHOR = "author"
    OPERATOR = "operator"
    VIEWER = "viewer"
