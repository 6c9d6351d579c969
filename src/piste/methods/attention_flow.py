"""Attention flow: how much could reach the answer from a token through the layers' attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from piste.classifiers.introspection.tracing import Trace
from piste.errors import PisteError
from piste.methods.attention_base import AttentionMethod, PerUnit, layer_maps, with_residual
from piste.types import Floats, Ints
from piste.validation import check_count

_SCALE = 2**28
"""Capacities are whole numbers for the solver; sums of them must stay below 2³¹."""


@dataclass(frozen=True)
class AttentionFlow(AttentionMethod):
    """The maximum flow from the token that is read to every input token j, summed over a unit's j.

    Nodes are the tokens in every layer; an edge leads from token i after layer l to token j before
    it, with the capacity Ã_ij of :class:`~piste.methods.attention_rollout.AttentionRollout`. Where
    rollout multiplies along paths, flow is bounded by the narrowest edge. If the head reads
    several tokens, each may send its share of 1.

    One flow per token through layers · tokens² edges: the time grows about with the third power of
    the length (6 layers: 0.1 s for 64 tokens, 1 to 2 s for 128, 10 to 20 s for 256), so texts of
    more than ``most_tokens`` are refused.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A fine film.", method="attention_flow")
    >>> bool((e.scores["sensitivity"] <= 1).all())
    True
    """

    most_tokens: int = 256

    name: ClassVar[str] = "attention_flow"
    about: ClassVar[str] = "maximum flow through the attention of all layers (no direction)"
    paper: ClassVar[str] = "Abnar & Zuidema, ACL 2020"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("most_tokens", self.most_tokens)

    def weigh(self, trace: Trace) -> PerUnit:
        if trace.tokens > self.most_tokens:
            raise PisteError(
                f"Attention flow solves one flow for each of the {trace.tokens} tokens, through "
                f"{len(trace.layers) * trace.tokens**2} edges, and most_tokens={self.most_tokens}: "
                "choose 'attention_rollout', a shorter input, or raise most_tokens and wait."
            )
        wanted = np.flatnonzero(trace.token_units >= 0)
        flows = np.zeros(trace.tokens)
        flows[wanted] = maximum_flows(
            with_residual(layer_maps(trace)), sources=trace.readers, sinks=wanted
        )
        return trace.per_unit(flows), {}


def maximum_flows(maps: Sequence[Floats], sources: Ints, sinks: Ints) -> Floats:
    """The maximum flow from the sources after the last map to each sink before the first.

    ``maps`` (queries × keys each) are in the order of the layers. Sources share a flow of 1.

    >>> one = np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> maximum_flows([one, one], np.array([0]), np.array([0, 1])).round(6).tolist()
    [0.5, 1.0]
    """
    tokens, layers = len(maps[0]), len(maps)
    begin = tokens * (layers + 1)
    tails, heads, capacities = [], [], []
    for number, one in enumerate(maps):
        i, j = np.nonzero(one > 0)
        tails.append(i + tokens * (number + 1))
        heads.append(j + tokens * number)
        capacities.append(one[i, j])
    tails.append(np.full(len(sources), begin))
    heads.append(sources + tokens * layers)
    capacities.append(np.full(len(sources), 1.0 / len(sources)))
    whole = np.round(np.concatenate(capacities) * _SCALE).astype(np.int32)
    places = (np.concatenate(tails), np.concatenate(heads))
    graph = csr_array((whole, places), shape=(begin + 1, begin + 1))
    flows = [maximum_flow(graph, begin, int(sink)).flow_value for sink in sinks]
    return np.array(flows, dtype=np.float64) / _SCALE
