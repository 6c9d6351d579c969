"""What may come in and what goes out, as the OpenAPI description tells it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from piste.options import HELP

Name = Annotated[str, Field(max_length=200)]


class Strict(BaseModel):
    """Nothing but what is described is taken."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ExplanationRequest(Strict):
    """One input, and how it is to be explained."""

    text: Annotated[str | None, Field(description="The text to explain.")] = None
    pair: Annotated[
        str | None, Field(description="The second text, for models that read pairs.")
    ] = None
    image: Annotated[
        str | None, Field(description="An image file in base64, for models that see images.")
    ] = None
    model: Annotated[
        Name | None, Field(description="A name from GET /api/models; without it, the first.")
    ] = None
    methods: Annotated[
        list[Name], Field(min_length=1, max_length=32, description="Names from GET /api/models.")
    ] = ["slalom"]
    units: Annotated[Name | None, Field(description=HELP["units"])] = None
    target: Annotated[Name | None, Field(description=HELP["target"])] = None
    samples: Annotated[
        int | None, Field(ge=10, description="How many questions every method may ask.")
    ] = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, description=HELP["seed"])] = 0
    long: Annotated[
        Literal["error", "truncate", "windows"],
        Field(description=HELP["long"]),
    ] = "error"
    removal: Annotated[Name, Field(description=HELP["removal"])] = "delete"


class RemovalRequest(Strict):
    """Units to remove from the input."""

    removed: Annotated[
        list[Annotated[int, Field(ge=0, le=2**31 - 1)]],
        Field(min_length=1, max_length=100_000, description="Numbers of units, from 0."),
    ]


class Problem(BaseModel):
    """Why it was refused, in one sentence: what was expected, what was given, what to do."""

    problem: str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an operation may answer beside its result; those of the security checks always can."""
    always = (401, 403, 421, 422)
    return {status: {"model": Problem} for status in sorted({*statuses, *always})}


class ModelInfo(BaseModel):
    """One model that can be asked."""

    name: str
    reads: Literal["texts", "images"]
    labels: list[str]
    units: list[str]
    methods: list[str]


class MethodInfo(BaseModel):
    """One way to explain."""

    name: str
    about: str


class Models(BaseModel):
    """All that can be asked, and within which limits."""

    models: list[ModelInfo]
    methods: list[MethodInfo]
    limits: dict[str, float]
    results: list[str]


class Job(BaseModel):
    """An explanation in the making, or made."""

    id: str
    state: Literal["waiting", "working", "done", "failed", "cancelled"]
    stage: str
    """What is being done."""
    done: int
    """Questions answered in this stage."""
    total: int
    """Questions planned so far in this stage."""
    ahead: int
    """How many are before it in the queue."""
    problem: str | None = None


class Removed(BaseModel):
    """The model's real answer without some units, beside what was expected of it."""

    removed: list[int]
    answer: float
    label: str
    probability: float | None
    methods: list[str]
    expected: list[float | None]


class ViewAnswer(BaseModel):
    """A view for the page."""

    title: str
    html: str
    rules: str
    data: dict[str, Any]
