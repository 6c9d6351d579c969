"""The methods, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from piste.errors import PisteError, need
from piste.methods.attention import Attention
from piste.methods.attention_flow import AttentionFlow
from piste.methods.attention_norms import AttentionNorms
from piste.methods.attention_rollout import AttentionRollout, GradientRollout
from piste.methods.attention_shapley import AttentionShapley
from piste.methods.attnlrp import AttnLRP
from piste.methods.base import Method, Solution, Task
from piste.methods.controls import CentreMethod, RandomMethod, ZeroMethod
from piste.methods.grad_sam import GradSam
from piste.methods.gradient import Gradient
from piste.methods.gradient_x_input import GradientTimesInput
from piste.methods.integrated_gradients import IntegratedGradients
from piste.methods.kernel_shap import KernelShapMethod
from piste.methods.lime import LimeMethod
from piste.methods.linear import LinearMethod
from piste.methods.occlusion import OcclusionMethod
from piste.methods.partition_shap import PartitionShapMethod
from piste.methods.permutation_shap import PermutationShapMethod
from piste.methods.slalom import SlalomMethod
from piste.methods.smoothgrad import SmoothGrad
from piste.methods.vocabulary import VocabularyMethod

METHODS: Mapping[str, type[Any]] = {
    method.name: method
    for method in (
        SlalomMethod,
        VocabularyMethod,
        LimeMethod,
        KernelShapMethod,
        PartitionShapMethod,
        PermutationShapMethod,
        LinearMethod,
        OcclusionMethod,
        Gradient,
        GradientTimesInput,
        IntegratedGradients,
        SmoothGrad,
        AttnLRP,
        Attention,
        AttentionNorms,
        AttentionRollout,
        AttentionFlow,
        GradSam,
        GradientRollout,
        AttentionShapley,
        RandomMethod,
        CentreMethod,
        ZeroMethod,
    )
}

__all__ = ["METHODS", "Method", "SlalomMethod", "Solution", "Task", "make", "options_of"]


def make(name: str, options: Mapping[str, Any]) -> Method:
    """A method by name with its options; unknown names and options are refused."""
    known = options_of(name)
    for option in options:
        if option not in known:
            raise PisteError(
                f"The method {name!r} has no option {option!r}: it has {', '.join(known)}."
            )
    method: Method = METHODS[name](**options)
    if method.library:  # now, so that a missing one is told early and importing takes no one's time
        need(method.library, "peers", f"The method {name!r}")
    return method


def options_of(name: str) -> list[str]:
    """The names of a method's options; an unknown method is refused."""
    if name not in METHODS:
        raise PisteError(f"method={name!r} is unknown: choose {', '.join(METHODS)}.")
    return [field.name for field in fields(METHODS[name])]
