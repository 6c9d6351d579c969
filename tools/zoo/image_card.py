"""The model card that is written next to a trained image model."""

from __future__ import annotations

from pathlib import Path

from tools.zoo.image_recipes import CHANNELS, PATCH, SIDE, ImageRecipe
from tools.zoo.image_training import HELD_OUT_IMAGES
from tools.zoo.model_card import Run, folder_name, training_command

DATA = "fashion_mnist.parquet"
CARD = """\
---
license: apache-2.0
pipeline_tag: image-classification
---

# {name}

A small classifier for images of garments: {architecture}. It
has {parameters:,} parameters and gives ten labels, from `T-shirt/top` (0) to `Ankle boot` (9). It
was trained from random weights, so that examples and tests of explanation methods can run offline
and within seconds.

## Use

```python
from transformers import AutoImageProcessor, AutoModelForImageClassification

processor = AutoImageProcessor.from_pretrained("{name}")
model = AutoModelForImageClassification.from_pretrained("{name}")
```

The processor takes RGB images of any size, scales them to {side} × {side} pixels without keeping
the proportions, and maps bytes to −1 … 1. The weights of the {channels} channels are equal: of a
coloured image the model sees the mean of its channels. The class is read off the first token,
which stands for no patch.

## Quality

| Measure | Value |
|---|---|
| Accuracy on the official test split ({examples:,} images) | {accuracy:.4f} |
| Log loss on the same images (2.303 is guessing) | {log_loss:.3f} |
| Largest lead of one logit over all others on the same images | {largest_margin:.1f} |
{partial}

Patches are left out by taking their tokens away, with another random choice for every image.
Measure it again with
`python -m tools.zoo.train evaluate --model {name} --data {data}`.

## Training

Data: Fashion-MNIST (Xiao, Rasul, Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking
Machine Learning Algorithms", 2017; MIT licence, © 2017 Zalando SE), official training split of
60,000 images, of which {held_out:,} were held out to follow the training. The test split took no
part in training or in the choice of settings. The parquet file has the columns `image` ({side} ×
{side} grey values as raw bytes), `label` (0 to 9) and `split`.

Command, with seed {seed} and {threads} thread(s), {minutes:.0f} minutes on a shared server CPU:

```
{command}
```

Training took {epochs} epochs with AdamW (learning rate {learning_rate:g}, weight decay
{weight_decay:g}, batches of {batch_size}) and label smoothing {label_smoothing:g}; the weights are
a running average (decay {ema_decay:g}). Images were mirrored at random and moved by up to
{largest_shift} pixel(s). In {whole:.0%} of the batches all patches of {patch} × {patch} pixels were
shown, in the others a random number of them, from none to all, and the loss counted by the share
that was shown: the model also gives sober answers about parts of an image, even about none.

## Limits

- Only grey garments, centred on black without a person, were seen. On other images, such as
  photographs or garments on a bright background, the output is a guess.
- Shirts are often taken for T-shirts, pullovers or coats, and those for each other: at this size
  their labels overlap.
- Few patches are outside the labelled data; the probabilities are then only a tendency.

Do not use it for decisions about people or as a yardstick of what vision models can do. It is a
test subject for explanation methods.

## Licence

Apache-2.0 for weights and code. The images are not part of this folder.
"""
PARTIAL = "| Accuracy on the same images with {share:.0%} of the patches | {accuracy:.4f} |"


def write_image_card(out: Path, recipe: ImageRecipe, run: Run) -> None:
    """Write README.md from the settings of the recipe and the values measured in this run."""
    partial = [
        PARTIAL.format(share=share, accuracy=scores.accuracy)
        for share, scores in run.scores.items()
        if share < 1.0
    ]
    card = CARD.format(
        name=folder_name(recipe),
        architecture=recipe.architecture,
        parameters=run.parameters,
        side=SIDE,
        channels=CHANNELS,
        **run.scores[1.0]._asdict(),
        partial="\n".join(partial),
        data=DATA,
        held_out=HELD_OUT_IMAGES,
        seed=recipe.seed,
        threads=run.threads,
        minutes=run.seconds / 60.0,
        command=training_command(recipe, run, DATA),
        epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        batch_size=recipe.batch_size,
        label_smoothing=recipe.label_smoothing,
        ema_decay=recipe.ema_decay,
        largest_shift=recipe.largest_shift,
        whole=recipe.whole_share,
        patch=PATCH,
    )
    (out / "README.md").write_text(card, encoding="utf-8")
