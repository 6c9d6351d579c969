"""Key biases in attention, wherever torch computes it, and whether they hide a token."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from piste.classifiers.introspection.key_bias import (
    HIDDEN,
    KeyBias,
    NoAttentionError,
    is_hidden,
    run_biased,
)
from tests.classifiers.test_soft_mean import soft_mean
from tests.conftest import TEXT, build


def logits(model: Any, ids: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=ids, **more).logits
    return found


def hidden(model: Any, ids: torch.Tensor, place: int) -> bool:
    changed = ids.clone()
    changed[0, place] = 3
    run, other = (partial(logits, model, one) for one in (ids, changed))
    return is_hidden(run, other, torch.zeros(ids.shape), place)


def test_a_hidden_key_is_one_that_the_attention_mask_hides(bert: Any) -> None:
    subject = bert.subject(TEXT, removal="attention")
    truth = subject.ask([[*range(3), *range(5, len(subject))]])[0]
    ((question, _),) = bert.subject(TEXT).encode(range(len(subject)))
    ids = torch.from_numpy(question.payload[0])[None]
    bias = torch.zeros(ids.shape)
    bias[0, np.isin(subject.token_units, [3, 4])] = HIDDEN
    mask = torch.ones_like(ids)
    found = run_biased(partial(logits, bert.model, ids, attention_mask=mask), bias)[0]
    np.testing.assert_allclose(found.double().numpy(), truth, atol=1e-5)
    assert np.abs(logits(bert.model, ids)[0].double().numpy() - truth).max() > 1e-3


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_no_bias_changes_nothing_and_hiding_hides(implementation: str) -> None:
    model = build("bert", attn_implementation=implementation)
    ids = torch.arange(5, 17)[None]
    with KeyBias(torch.zeros(ids.shape)) as found:
        same = logits(model, ids)
    assert found.times == model.config.num_hidden_layers
    torch.testing.assert_close(same, logits(model, ids), atol=1e-5, rtol=0)
    assert hidden(model, ids, 6)


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(NoAttentionError, match="no attention"):
        hidden(build("fnet"), torch.arange(5, 17)[None], 6)


@pytest.mark.parametrize("pooled", [False, True])
def test_what_passes_attention_by_is_not_hidden(pooled: bool) -> None:
    assert hidden(soft_mean(pooled=pooled), torch.arange(5, 15)[None], 4) is not pooled
