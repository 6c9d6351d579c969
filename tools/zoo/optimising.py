"""What all recipes share: the settings of a run, the training loop and what is measured."""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

LOG_EVERY_STEPS = 100
# Sums are rounded differently with another number of threads, so one is the documented default.
DEFAULT_THREADS = 1


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings that every training run has, so that the model card can state them."""

    name: str
    architecture: str
    seed: int = 2026
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup_share: float = 0.05
    label_smoothing: float = 0.02
    ema_decay: float = 0.999


class Scores(NamedTuple):
    """What an evaluation measures."""

    accuracy: float
    log_loss: float
    # Largest lead of the winning logit over the next one, to notice absurd confidence.
    largest_margin: float
    examples: int

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor) -> Scores:
        """Compare the answers for a whole split with its labels."""
        best = logits.topk(2, dim=1).values
        return cls(
            accuracy=(logits.argmax(dim=1) == labels).double().mean().item(),
            log_loss=functional.cross_entropy(logits, labels).item(),
            largest_margin=(best[:, 0] - best[:, 1]).max().item(),
            examples=len(labels),
        )


def _parameter_groups(model: PreTrainedModel, weight_decay: float) -> list[dict[str, object]]:
    """Biases and layer norms are not decayed: shrinking them hurts without regularising."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


@torch.no_grad()
def _update_average(average: PreTrainedModel, model: PreTrainedModel, decay: float) -> None:
    for averaged, current in zip(average.parameters(), model.parameters(), strict=True):
        averaged.lerp_(current, 1.0 - decay)


def optimise(
    model: PreTrainedModel,
    settings: Settings,
    epochs: int,
    steps_per_epoch: int,
    batch_losses: Callable[[int], Iterable[Tensor]],
    score_epoch: Callable[[PreTrainedModel], Scores],
) -> PreTrainedModel:
    """Train a model and return the running average of its weights.

    ``batch_losses`` gives the losses of one epoch (counted from 0), each computed only when the
    step before it is done; ``score_epoch`` measures the average after every epoch.
    """
    average: PreTrainedModel = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(
        _parameter_groups(model, settings.weight_decay),
        lr=settings.learning_rate,
        betas=(0.9, 0.98),
    )
    total_steps = epochs * steps_per_epoch
    warmup_steps = settings.warmup_share * total_steps

    def rate(step: int) -> float:
        """Linear warm-up, then half a cosine down to zero."""
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        done = (step - warmup_steps) / (total_steps - warmup_steps)
        return 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    started, step = time.monotonic(), 0
    for epoch in range(epochs):
        model.train()
        for loss in batch_losses(epoch):
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
            # A short memory at first, so that the average soon forgets the initial weights.
            decay = min(settings.ema_decay, step / (step + 10.0))
            _update_average(average, model, decay)
            if step % LOG_EVERY_STEPS == 0:
                logger.info("step %d of %d, loss %.3f", step, total_steps, loss.item())
        scores = score_epoch(average)
        logger.info(
            "epoch %d of %d: held-out accuracy %.4f, log loss %.3f, after %.0f s",
            epoch + 1, epochs, scores.accuracy, scores.log_loss, time.monotonic() - started,
        )  # fmt: skip
    return average
