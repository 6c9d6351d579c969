"""What is told of results to browse, as the OpenAPI description has it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field

ResultKind: TypeAlias = Literal[
    "corpus", "vocabulary", "concepts", "explanation", "comparison", "evaluation"
]
Sort: TypeAlias = Literal[
    "document", "predicted", "probability", "r2", "units", "surprise"
]  # names of columns of the query in run_documents: clients can sort by nothing else


class ResultInfo(BaseModel):
    """One result that can be browsed."""

    number: Annotated[int, Field(description="By which it is asked for.")]
    kind: ResultKind
    name: Annotated[str, Field(description="Of its file or folder.")]
    about: str


class DocumentRow(BaseModel):
    """One document of a corpus run."""

    document: int
    id: str | None
    predicted: str
    probability: float | None
    r2: Annotated[float | None, Field(description="How well the explanation predicts the model.")]
    units: int
    surprise: float | None
    truth: Annotated[str | None, Field(description="The label that the data give it.")]
    agrees: Annotated[bool | None, Field(description="Whether that label is the predicted one.")]
    text: Annotated[str, Field(description="Its beginning, or the place where it was found.")]
    kept: dict[str, str | None]


class Documents(BaseModel):
    """A page of a corpus run's documents."""

    total: Annotated[int, Field(description="Documents that fit what is searched for.")]
    offset: int
    rows: list[DocumentRow]
    predicted: Annotated[list[str], Field(description="Labels that were predicted at all.")]
    kept: list[str]
    truth: Annotated[str | None, Field(description="Which of these has the data's labels.")]
    surprise: Annotated[str, Field(description="What surprise means in this run.")]
