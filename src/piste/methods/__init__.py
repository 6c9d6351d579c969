"""The methods, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from piste.registry import Registry, lazy_names

if TYPE_CHECKING:
    from piste.methods.base import Method, Solution, Task, make, options_of
    from piste.methods.slalom import SlalomMethod
else:  # a list of methods needs none of them
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.methods.base": ["Method", "Solution", "Task", "make", "options_of"],
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
