"""What may come in and what goes out, as the OpenAPI description tells it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from piste.options import HELP

Name = Annotated[str, Field(max_length=200)]
Units = (
    Annotated[str, Field(max_length=20_000)]
    | Annotated[list[Name], Field(min_length=1, max_length=8)]
    | Annotated[
        list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=3)]],
        Field(min_length=1, max_length=2000),
    ]
)
"""A kind, levels or spans, as a string or as a list."""

Phrases = (
    Annotated[str, Field(max_length=2000)]
    | Annotated[
        list[
            Annotated[str, Field(max_length=2000)]
            | Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=3)]
        ],
        Field(min_length=1, max_length=100),
    ]
)
"""auto, or phrases and spans."""

FieldText = str | Annotated[list[str], Field(min_length=1, max_length=200)]
"""What fills a field of a prompt: a text, or several documents."""


class Strict(BaseModel):
    """Nothing but what is described is taken."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ExplanationRequest(Strict):
    """One input, and how it is to be explained."""

    text: Annotated[str | None, Field(description="The text to explain.")] = None
    pair: Annotated[
        str | None, Field(description="The second text, for models that read pairs.")
    ] = None
    fields: Annotated[
        dict[Name, FieldText] | None,
        Field(
            max_length=40,
            description="Instead of the text, for models whose prompt has fields: a text or a "
            "list of documents for each.",
        ),
    ] = None
    chat: Annotated[
        bool,
        Field(description="Of a language model: send the text as a message of a chat."),
    ] = False
    answer: Annotated[
        str | None,
        Field(
            description="Of a language model: the answer to explain; without it, the model's own."
        ),
    ] = None
    against: Annotated[
        str | None,
        Field(description="Of a language model: another answer, which the first is held against."),
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
    units: Annotated[Units | None, Field(description=HELP["units"])] = None
    phrases: Annotated[Phrases | None, Field(description=HELP["phrases"])] = None
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


class SpanRequest(Strict):
    """A span of an answer."""

    start: Annotated[int, Field(ge=0, le=2**31 - 1, description="Its first character, from 0.")]
    end: Annotated[int, Field(ge=1, le=2**31 - 1, description="The character behind its last.")]


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
    is_language_model: bool = False
    """Whether it answers freely, without labels."""
    prompt: str | None = None
    """How it is asked, if it is a language model with a prompt of its own."""
    fields: list[str] = []
    """What the prompt has places for."""
    chat: bool = False
    """Whether a text can be sent as a message of a chat."""
    is_remote: bool = False
    """Whether every question is a request to another server."""
    examples: list[str] = []
    """Texts to try it with."""


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
    """Questions expected in this stage."""
    share: float = 0.0
    """How much of the work is done, 0 to 1: it only grows."""
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


class SpanAnswer(BaseModel):
    """The explanation of a span of an answer: scores of every unit, and of every kind of units."""

    said: str
    value: float
    reasons: list[tuple[str, bool]]
    """The reasons, piece by piece; true for names of units."""
    trust: str
    warnings: list[str]
    r2: float | None
    scores: list[float | None]
    errors: list[float | None]
    places: int
    sides: list[str]
    """What positive and negative scores mean."""
    columns: list[dict[str, Any]]
    """All scores of every kind of unit, with their errors."""
    plane: tuple[str, str] | None
    """Which of them make the plane."""
    order: list[int]
    """Kinds that have a name there."""
    heading: str
    note: str
    sum_heading: str
    sum_note: str


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
    choices: Annotated[
        dict[str, list[str]], Field(description="All cells of kept columns that have few.")
    ]
    measured: Annotated[bool, Field(description="Whether any explanation has an R².")]
    noted: Annotated[bool, Field(description="Whether any document has a note.")]
    truth: Annotated[str | None, Field(description="Which of these has the data's labels.")]
    surprise: Annotated[str, Field(description="What surprise means in this run.")]


class Neighbours(BaseModel):
    """What stands around a document among those that fit what is searched for."""

    before: int | None
    after: int | None
    place: Annotated[int | None, Field(description="From 1; null if it does not fit.")]
    total: int


class DocumentView(ViewAnswer):
    """One document for the page."""

    neighbours: Neighbours
