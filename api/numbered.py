"""Pages with numbers, for lists of `/v1/audience`: `?page=2&rows=50`, and how many there are in all."""

from dataclasses import dataclass
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from api.paging import LIMIT_DEFAULT, LIMIT_MAX, Count

PAGE_MAX: Final = 1_000_000

Out = TypeVar("Out", bound=BaseModel)


class Numbered(BaseModel, Generic[Out]):
    """One page of a list with numbered pages."""

    data: list[Out]
    page: int = Field(description="Which page this is, from 1 on.", examples=[1])
    rows: int = Field(description="The most that a page holds.", examples=[LIMIT_DEFAULT])
    total: int = Field(description="How many there are on all pages.", examples=[1])


@dataclass(frozen=True, slots=True)
class NumberedAsked:
    """Which page is asked for: the one of this number, of pages with so many rows."""

    page: int
    rows: int

    @property
    def skipped(self) -> int:
        """How many rows come before it."""
        return (self.page - 1) * self.rows


def read_numbered(
    page: Annotated[Count, Query(ge=1, le=PAGE_MAX, description="The number of the page.")] = 1,
    rows: Annotated[Count, Query(ge=1, le=LIMIT_MAX, description="The most of a page.")] = LIMIT_DEFAULT,
) -> NumberedAsked:
    """Read which page is asked for."""
    return NumberedAsked(page, rows)


NumberedPage = Annotated[NumberedAsked, Depends(read_numbered)]
