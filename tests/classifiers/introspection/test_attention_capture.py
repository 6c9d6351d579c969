"""What torch's attention is called with."""

from __future__ import annotations

import torch

from piste.classifiers.introspection.attention_capture import AttentionCapture, AttentionInputs


def states(heads: int, tokens: int = 5) -> torch.Tensor:
    return torch.randn(1, heads, tokens, 8, generator=torch.Generator().manual_seed(heads))


def test_heads_that_share_keys_get_a_copy_each() -> None:
    query, key = states(6), states(2)
    given = AttentionInputs(query, key, key, enable_gqa=True)
    assert torch.equal(given.for_each_head(key), key.repeat_interleave(3, dim=1))
    assert AttentionInputs(query, key, key).for_each_head(key) is key


def test_attention_is_the_same_while_it_is_captured() -> None:
    query, key, value = states(4), states(2), -states(2)
    how = {"is_causal": True, "enable_gqa": True, "scale": 0.3}
    attend = torch.nn.functional.scaled_dot_product_attention
    with AttentionCapture(5) as found:
        seen = attend(query, key, value, **how)
    assert torch.allclose(seen, attend(query, key, value, **how), atol=1e-6)
    [call] = found.attentions()
    assert call.weights.shape == (1, 4, 5, 5)


def test_attention_to_other_things_is_counted_and_left_alone() -> None:
    query, key = states(2), states(2, tokens=3)
    attend = torch.nn.functional.scaled_dot_product_attention
    with AttentionCapture(5) as found:
        seen = attend(query, key, key, scale=0.3)
    assert torch.equal(seen, attend(query, key, key, scale=0.3))
    assert found.missed == [(5, 3)]
    assert not found.attentions()
