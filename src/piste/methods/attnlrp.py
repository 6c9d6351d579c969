"""AttnLRP: relevance propagated from the answer back to the tokens, through attention too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.classifiers.introspection.relevance import RelevanceModel, check_rules
from piste.methods.additive import AdditiveScores
from piste.methods.base import Task
from piste.methods.gradients import Forward, GradientMethod, PerToken


@dataclass(frozen=True)
class AttnLRP(GradientMethod):
    """R_t = e_t · ∂f̃/∂e_t, summed over the tokens of a unit.

    f̃ has the value of f, and a derivative by the rules of layer-wise relevance propagation:
    linear layers hand relevance back in proportion to what came in (ε-rule, ε → 0), element-wise
    functions and normalisations unchanged (identity rule), products of two activations half to
    each (uniform rule), the softmax by its derivative. See
    :mod:`piste.classifiers.introspection.relevance`.

    What biases, positions and special tokens contribute stays with the base. A model of which a
    step has no rule is refused.

    Layer-wise relevance propagation is patented for commercial use.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A wonderful film.", method="attnlrp")
    >>> e.units[int(e.scores["attribution"].argmax())].text
    'wonderful'
    """

    name: ClassVar[str] = "attnlrp"
    about: ClassVar[str] = "relevance handed back layer by layer (patented for commercial use)"
    paper: ClassVar[str] = "Achtibat et al., ICML 2024; Bach et al., 2015"

    def compute_scores(self, access: GradientAccess, task: Task) -> AdditiveScores:
        embeddings = access.start
        name = type(access.twin).__name__
        with torch.random.fork_rng(devices=[]):
            with torch.no_grad():
                own = access.logits(embeddings)
            access.twin = RelevanceModel(access.twin)
            with torch.enable_grad():
                ruled = access.logits(embeddings.clone().requires_grad_())
        check_rules(name, own, ruled)
        return super().compute_scores(access, task)

    def attribute(
        self, forward: Forward, embeddings: torch.Tensor, access: GradientAccess, task: Task
    ) -> PerToken:
        given = embeddings.clone().requires_grad_()
        (slopes,) = torch.autograd.grad(forward(given).sum(), given)
        return (slopes * embeddings)[0].sum(dim=-1), {}
