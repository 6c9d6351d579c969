"""The methods, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from piste.errors import PisteError, need, shorten
from piste.registry import Registry, lazy_names

if TYPE_CHECKING:
    from piste.methods.base import Method, Solution, Task
    from piste.methods.slalom import SlalomMethod
else:  # a list of methods needs none of them
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.methods.base": ["Method", "Solution", "Task"],
            "piste.methods.slalom": ["SlalomMethod"],
        },
    )

METHODS: Registry[type[Any]] = Registry(
    "method",
    "piste.methods",
    {
        "slalom": "piste.methods.slalom:SlalomMethod",
        "vocabulary": "piste.methods.vocabulary:VocabularyMethod",
        "lime": "piste.methods.lime:LimeMethod",
        "kernel_shap": "piste.methods.kernel_shap:KernelShapMethod",
        "partition_shap": "piste.methods.partition_shap:PartitionShapMethod",
        "permutation_shap": "piste.methods.permutation_shap:PermutationShapMethod",
        "contextcite": "piste.methods.contextcite:ContextCiteMethod",
        "clime": "piste.methods.clime:CLimeMethod",
        "spex": "piste.methods.spex:SpexMethod",
        "proxyspex": "piste.methods.proxyspex:ProxySpexMethod",
        "faith_banzhaf": "piste.methods.faith_banzhaf:FaithBanzhafMethod",
        "ksii": "piste.methods.ksii:KSiiMethod",
        "linear": "piste.methods.linear:LinearMethod",
        "occlusion": "piste.methods.occlusion:OcclusionMethod",
        "gradient": "piste.methods.gradient:Gradient",
        "gradient_x_input": "piste.methods.gradient_x_input:GradientTimesInput",
        "integrated_gradients": "piste.methods.integrated_gradients:IntegratedGradients",
        "smoothgrad": "piste.methods.smoothgrad:SmoothGrad",
        "attnlrp": "piste.methods.attnlrp:AttnLRP",
        "attention": "piste.methods.attention:Attention",
        "attention_norms": "piste.methods.attention_norms:AttentionNorms",
        "attention_rollout": "piste.methods.attention_rollout:AttentionRollout",
        "attention_flow": "piste.methods.attention_flow:AttentionFlow",
        "grad_sam": "piste.methods.grad_sam:GradSam",
        "gradient_rollout": "piste.methods.attention_rollout:GradientRollout",
        "attention_shapley": "piste.methods.attention_shapley:AttentionShapley",
        "random": "piste.methods.controls:RandomMethod",
        "centre": "piste.methods.controls:CentreMethod",
        "zero": "piste.methods.controls:ZeroMethod",
    },
)
"""Methods by name; those of installed packages and registered ones too."""

ALIASES = {"leave_one_out": "occlusion"}
"""Other names of methods, as peers call them."""

MethodChoice: TypeAlias = "str | Method | type[Method]"
"""A name of :data:`METHODS` or :data:`ALIASES`, a method with options, or a class of methods."""

__all__ = [
    "ALIASES",
    "METHODS",
    "Method",
    "MethodChoice",
    "SlalomMethod",
    "Solution",
    "Task",
    "make",
    "options_of",
]


def make(method: Any, options: Mapping[str, Any]) -> Method:
    """A method (see :data:`MethodChoice`) with options; unknown names and options are refused.

    ``samples`` is accepted by all: methods that do not ask a number of questions leave it out, and
    their results say so.

    >>> make("occlusion", {"samples": 100}).name, make(SlalomMethod(), {"samples": 50}).samples
    ('occlusion', 50)
    >>> make("leave_one_out", {}).name
    'occlusion'
    """
    from piste.methods.base import Method

    kind: Any = type(method) if isinstance(method, Method) else _class(method)
    known = [field.name for field in fields(kind)]
    chosen = {name: value for name, value in options.items() if name in known}
    for option in options:
        if option not in known and option != "samples":
            raise PisteError(
                f"The method {kind.name!r} has no option {option!r}: it has {', '.join(known)}."
            )
    made: Method = (
        kind(**chosen) if method is kind or isinstance(method, str) else replace(method, **chosen)
    )
    if made.library:  # now, so that a missing one is reported early
        need(made.library, made.extra, f"The method {kind.name!r}")
    return made


def options_of(method: str | type[Method]) -> list[str]:
    """The names of a method's options; an unknown method is refused."""
    return [field.name for field in fields(_class(method))]


def _class(method: object) -> Any:
    from piste.methods.base import Method

    if isinstance(method, type) and issubclass(method, Method):
        return method
    if isinstance(method, str):
        method = ALIASES.get(method, method)
    if not isinstance(method, str) or method not in METHODS:
        raise PisteError(
            f"method: expected one of {', '.join(METHODS)}, or a piste.methods.Method, got "
            f"{shorten(method)}."
        )
    return METHODS[method]
