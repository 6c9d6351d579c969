"""What a model holds of many inputs: token states, the attention they get, and gradients.

A layer's number says after how many blocks a state stands: 0 are the embeddings, 1 what the first
block makes of them. A state goes with the attention that *reads* it, that of the next block; the
last states are read by the head alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from piste.classifier import Classifier
from piste.classifiers.base import input_embeddings
from piste.classifiers.introspection.attention_capture import AttentionCapture
from piste.classifiers.text.batching import unused_id
from piste.errors import PisteError
from piste.subject import Subject
from piste.target import Target
from piste.types import Ints

TOKENS = 2048
"""Tokens of one batch: attention matrices and what a gradient needs must fit beside them."""
_READS = 1e-6
"""Share of the largest gradient below which the head is said not to read a token."""


@dataclass(frozen=True)
class StateBatch:
    """Inputs of one shape, seen in one pass; what has layers has them in the order asked for."""

    numbers: tuple[int, ...]
    """Which of the inputs these are."""
    states: tuple[torch.Tensor, ...]
    """By layer: rows × tokens × features. No row is padded, so every token is the input's."""
    attention: tuple[torch.Tensor, ...] | None
    """By layer: rows × tokens, from the tokens that the head reads, mean over heads; rows sum to
    1. None where the model's attention was not met."""
    readers: torch.Tensor
    """Rows × tokens, whether the head reads the token: [CLS], the last one, or all."""
    gradients: tuple[tuple[torch.Tensor, ...], ...]
    """By goal and layer: of the goal with respect to the states; empty if not asked for."""
    token_units: tuple[Ints, ...]
    """By row: the unit of every token, −1 for fixed ones."""


@dataclass(frozen=True)
class Row:
    """One input as tensors."""

    number: int
    inputs: dict[str, torch.Tensor]
    token_units: Ints

    @property
    def shape(self) -> tuple[Any, ...]:
        """Rows of one shape can share a pass without padding."""
        return (
            len(self.token_units),
            *((name, *tensor.shape[1:]) for name, tensor in self.inputs.items()),
        )


class StateReader:
    """Reads the states of inputs, in a twin of the model that shares its weights.

    ``goals`` are the numbers whose gradients are needed, one per input each.

    >>> import piste
    >>> clf = piste.load("piste:reviews")
    >>> reader = StateReader(clf, [Target("output", "logit of 'positive'", (1,))])
    >>> (seen,) = reader.read([clf.subject("A fine film")], [0, 1, 2])
    >>> seen.states[1].shape, seen.readers.tolist()
    (torch.Size([1, 5, 128]), [[True, False, False, False, False]])
    """

    def __init__(self, classifier: Classifier, goals: Sequence[Target]) -> None:
        self.classifier, self.goals = classifier, tuple(goals)
        self.calls = 0
        """Passes so far, every input counted."""
        self._twin: torch.nn.Module | None = None
        self._options: dict[str, Any] = {}
        self._depth: int | None = None
        config: Any = getattr(classifier, "config", None)
        text = config.get_text_config() if hasattr(config, "get_text_config") else None
        self._made_up = getattr(text, "pad_token_id", None) in (None, -1)

    @property
    def twin(self) -> torch.nn.Module:
        """What is run; it is there once an input was read."""
        assert self._twin is not None
        return self._twin

    @property
    def _name(self) -> str:
        return type(self._twin).__name__

    def probe(self, subject: Subject) -> int:
        """The number of blocks, from a pass of one input."""
        for _ in self.read([subject], ()):
            pass
        assert self._depth is not None
        return self._depth

    def read(
        self, subjects: Iterable[Subject], layers: Sequence[int], *, gradients: bool = True
    ) -> Iterator[StateBatch]:
        """Pass every input through the model, those of one shape together.

        Inputs are taken one by one, so that many images need not be held at once.
        """
        for rows in self.batches(subjects):
            yield self._read_states(rows, layers, gradients)

    def batches(self, subjects: Iterable[Subject]) -> Iterator[list[Row]]:
        """Inputs of one shape together, numbered in the given order."""
        waiting: dict[tuple[Any, ...], list[Row]] = {}
        for number, subject in enumerate(subjects):
            row = self._row(number, subject)
            rows = waiting.setdefault(row.shape, [])
            rows.append(row)
            if (len(rows) + 1) * len(row.token_units) > TOKENS:
                yield waiting.pop(row.shape)
        yield from waiting.values()

    def run(self, rows: Sequence[Row]) -> Any:
        """The model's output for a batch, with its states."""
        self.calls += len(rows)
        inputs = {name: torch.cat([row.inputs[name] for row in rows]) for name in rows[0].inputs}
        return self._run(inputs)

    def _row(self, number: int, subject: Subject) -> Row:
        if self._twin is None:
            inside = self.classifier.gradient_access(subject, self.goals[0])
            self._twin, self._options = inside.twin, inside.options
        units: Ints | None = getattr(subject, "token_units", None)
        if units is None or not subject.fits:  # looking inside says what is wrong, or what else
            units = self.classifier.gradient_access(subject, self.goals[0]).token_units
        return Row(number, self.classifier.tensors(subject), units)

    def _read_states(
        self, rows: Sequence[Row], layers: Sequence[int], gradients: bool
    ) -> StateBatch:
        tokens = len(rows[0].token_units)
        with torch.inference_mode(False), torch.enable_grad():
            with AttentionCapture(tokens) as capture:
                output = self.run(rows)
            every = self._states(output, tokens)
            numbers = [goal.of_tensor(output.logits).sum() for goal in self.goals]
            # The head alone is gone back through: this is no second pass.
            (last,) = self._slopes(numbers[0], every[-1:], retain=True)
            chosen = [every[layer] for layer in layers]
            slopes = []
            if gradients and chosen:
                for place, number in enumerate(numbers):
                    more = place + 1 < len(numbers)
                    slopes.append(self._slopes(number, chosen, retain=more))
        met = [one.weights for one in capture.attentions()]
        sizes = last.abs().amax(dim=-1)
        readers = sizes > _READS * sizes.amax(dim=1, keepdim=True)
        return StateBatch(
            numbers=tuple(row.number for row in rows),
            states=tuple(state.detach().float() for state in chosen),
            attention=_attention(met, readers, layers, len(every) - 1),
            readers=readers,
            gradients=tuple(slopes),
            token_units=tuple(row.token_units for row in rows),
        )

    def _run(self, inputs: dict[str, torch.Tensor]) -> Any:
        twin: Any = self._twin
        ids = inputs.get("input_ids")
        hook = None
        if ids is None:  # gradients begin at the pixels, also where all weights are frozen
            inputs = {name: one.detach().requires_grad_().clone() for name, one in inputs.items()}
        else:
            self._let_pad(twin.config.get_text_config(), ids)
            embedding = input_embeddings(twin)
            hook = None if embedding is None else embedding.register_forward_hook(_tracked)
        try:
            with torch.random.fork_rng(devices=[]):
                return twin(**inputs, **self._options, output_hidden_states=True)
        finally:
            if hook is not None:
                hook.remove()

    def _let_pad(self, config: Any, ids: torch.Tensor) -> None:
        """Rows are never padded, but decoders want a pad token before they take several rows.

        Where the model has none, the twin got an id that the first input does not hold; another
        input may hold it.
        """
        pad = getattr(config, "pad_token_id", None)
        if self._made_up and (pad is None or bool((ids == pad).any())):
            config.pad_token_id = unused_id(list(ids.cpu().numpy()))

    def _states(self, output: Any, tokens: int) -> tuple[torch.Tensor, ...]:
        states = getattr(output, "hidden_states", None)
        if not states or any(
            state.ndim != 3 or state.shape[1] != tokens or state.shape[0] != len(output.logits)
            for state in states
        ):
            raise PisteError(
                f"{self._name} does not give one state per token after every layer, and concepts "
                "are looked for in these: choose another model."
            )
        if not torch.isfinite(output.logits).all():
            raise PisteError(f"{self._name} answered NaN or infinity: check its weights.")
        self._depth = len(states) - 1
        return tuple(states)

    def _slopes(
        self, number: torch.Tensor, states: Sequence[torch.Tensor], *, retain: bool
    ) -> tuple[torch.Tensor, ...]:
        try:
            found = torch.autograd.grad(number, states, retain_graph=retain)
        except RuntimeError as problem:
            raise PisteError(
                f"The answer of {self._name} has no gradient at the states it gives, and concept "
                f"sensitivity needs it: choose another model ({problem})."
            ) from problem
        return tuple(slope.float() for slope in found)


def _tracked(layer: torch.nn.Module, args: Any, output: Any) -> Any:
    """Gradients begin at the embeddings, also where all weights are frozen."""
    if not isinstance(output, torch.Tensor) or output.requires_grad or not torch.is_grad_enabled():
        return output
    return output.detach().requires_grad_().clone()  # no leaf: models may write into it


def _attention(
    met: Sequence[torch.Tensor],
    readers: torch.Tensor,
    layers: Sequence[int],
    depth: int,
) -> tuple[torch.Tensor, ...] | None:
    """What the head's tokens look at, for every layer; None if attentions and layers don't match.

    The last states are read by the head: its tokens share the weight.
    """
    if len(met) != depth:
        return None
    share = readers.float() / readers.sum(dim=1, keepdim=True)
    found = []
    for layer in layers:
        if layer == depth:
            found.append(share)
            continue
        weights = met[layer].detach().float()
        rows, tokens = share.shape
        mean = weights.reshape(rows, -1, tokens, tokens).mean(dim=1)
        found.append(torch.einsum("rq,rqk->rk", share, mean))
    return tuple(found)
