"""A look inside a white-box classifier: embeddings, gradients, attentions of one input.

All of it happens in a twin that shares the model's tensors and has modules of its own, so hooks
and exchanged parts never touch the user's model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from piste.errors import PisteError

if TYPE_CHECKING:
    from piste.target import Target


class Inside:
    """One input inside its model.

    ``twin`` is a copy of the model around the same tensors, in evaluation mode; ``inputs`` are its
    tensors for the whole input, one row; ``token_units`` tells the unit of every token (−1 for
    fixed ones).
    """

    def __init__(
        self,
        twin: torch.nn.Module,
        inputs: dict[str, torch.Tensor],
        options: dict[str, Any],
        token_units: NDArray[np.int64],
        units: int,
        target: Target,
    ) -> None:
        self.twin, self.inputs, self.token_units, self.target = twin, inputs, token_units, target
        self._options = options
        self.calls = 0
        """Forward passes so far, each row of a batch counted."""
        self._units = units
        layer = getattr(twin, "get_input_embeddings", lambda: None)()
        if layer is None:
            raise PisteError(
                f"{type(twin).__name__} has no input embeddings to look at: choose a method that "
                "needs answers only (see `piste methods`)."
            )
        self.embedding: torch.nn.Module = layer

    @property
    def ids(self) -> torch.Tensor:
        return self.inputs["input_ids"]

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Embeddings of token ids, rows × tokens × features, detached from everything."""
        with torch.no_grad():
            return self.embedding(ids).detach()

    def logits(self, embeddings: torch.Tensor) -> torch.Tensor:
        """The model's logits if its tokens had these embeddings; differentiable."""
        rows = len(embeddings)
        self.calls += rows
        inputs = {name: tensor.expand(rows, -1) for name, tensor in self.inputs.items()}
        given = self.embedding.register_forward_hook(lambda *_: embeddings)
        try:
            output = self.twin(**inputs, **self._options)
        finally:
            given.remove()
        return output.logits

    def numbers(self, embeddings: torch.Tensor) -> torch.Tensor:
        """The explained number (questions) or numbers (questions × classes); differentiable."""
        return self.target.of_tensor(self.logits(embeddings))

    def per_unit(self, per_token: torch.Tensor | NDArray[Any]) -> NDArray[np.float64]:
        """Sums over the tokens of every unit; fixed tokens are left out."""
        array = per_token.detach().cpu() if isinstance(per_token, torch.Tensor) else per_token
        numbers = np.asarray(array, dtype=np.float64)
        real = self.token_units >= 0
        return np.bincount(
            self.token_units[real], weights=numbers[real], minlength=self._units
        ).astype(np.float64)
