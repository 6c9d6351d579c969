"""The model card that is written next to a trained text model."""

from __future__ import annotations

from pathlib import Path

from tools.zoo.model_card import Run, folder_name, training_command
from tools.zoo.text_recipes import MAX_TOKENS, TextRecipe
from tools.zoo.text_training import HELD_OUT_REVIEWS

DATA = "imdb.parquet"
CARD = """\
---
license: apache-2.0
language: en
pipeline_tag: text-classification
---

# {name}

A small sentiment classifier for English film reviews: {architecture}. It has {parameters:,}
parameters, reads up to {max_tokens} tokens and gives the labels `negative` (0) and `positive` (1).
It was trained from random weights, so that examples and tests of explanation methods can run
offline and within seconds.

## Use

```python
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSequenceClassification.from_pretrained("{name}")
```

{framing}

The tokenizer lower-cases and treats `<br />` as a blank; the offsets it returns refer to the raw
text.

## Quality

| Measure | Value |
|---|---|
| Accuracy on the official test split ({examples:,} reviews) | {accuracy:.4f} |
| Log loss on the same reviews (0.693 is guessing) | {log_loss:.3f} |
| Largest difference of the two logits on the same reviews | {largest_margin:.1f} |

Reviews were cut at {max_tokens} tokens. Measure it again with
`python -m tools.zoo.train evaluate --model {name} --data {data}`.

## Training

Data: IMDB reviews (Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011), official
training split of 25,000 reviews; repeated texts and texts that also occur in the test split were
removed, and {held_out:,} reviews held out to follow the training. Apart from that removal, the
test split took no part in training or in the choice of settings. The parquet file has the columns
`text`, `label` (0 or 1) and `split`.

Command, with seed {seed} and {threads} thread(s), {minutes:.0f} minutes on a shared server CPU:

```
{command}
```

The tokenizer was trained on the same reviews. Training took {epochs} epochs with AdamW (learning
rate {learning_rate:g}, weight decay {weight_decay:g}, batches of {batch_size}), sequences of at
most {lengths} tokens in turn, label smoothing {label_smoothing:g}; the weights are a running
average (decay {ema_decay:g}). Of each review a random share of up to {deletion:.0%} of the
tokens was deleted, and {short:.0%} of the reviews were cut to at most {short_limit} tokens, so that
the model also gives sober answers on partial and very short inputs.{every_position}

## Limits

- Only English film reviews were seen. On other subjects, languages or styles the output is a guess.
- Two layers mostly learn words and short phrases: negation ("not bad"), contrast and irony are
  often misread. Text after {max_tokens} tokens is ignored.
- Probabilities are somewhat too extreme.
- Single words and fragments are outside the labelled data; their probabilities are only a
  tendency.
- Names of films, actors and directors may carry sentiment, because they did so in the reviews.

Do not use it for decisions about people, for moderation, for measuring public opinion, or as a
yardstick of what language models can do. It is a test subject for explanation methods.

## Licence

Apache-2.0 for weights, tokenizer and code. The reviews are not part of this folder.
"""

ENCODER_FRAMING = (
    "The input is framed as `[CLS] text [SEP]`, and the class is read off `[CLS]`. Position "
    f"embeddings exist for {MAX_TOKENS} tokens including these two."
)
CAUSAL_FRAMING = (
    "Nothing is added around the text, and the class is read off the last token that is not "
    "`<|pad|>`; hence an empty text has no prediction."
)
EVERY_POSITION = " The label was also asked\nfor at every earlier position, with weight {weight:g}."


def write_text_card(out: Path, recipe: TextRecipe, run: Run) -> None:
    """Write README.md from the settings of the recipe and the values measured in this run."""
    causal = recipe.every_position_weight > 0.0
    card = CARD.format(
        name=folder_name(recipe),
        architecture=recipe.architecture,
        parameters=run.parameters,
        max_tokens=MAX_TOKENS,
        framing=CAUSAL_FRAMING if causal else ENCODER_FRAMING,
        **run.scores[1.0]._asdict(),
        data=DATA,
        held_out=HELD_OUT_REVIEWS,
        seed=recipe.seed,
        threads=run.threads,
        minutes=run.seconds / 60.0,
        command=training_command(recipe, run, DATA),
        epochs=len(recipe.epoch_lengths),
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        batch_size=recipe.batch_size,
        lengths=", ".join(str(length) for length in recipe.epoch_lengths),
        label_smoothing=recipe.label_smoothing,
        ema_decay=recipe.ema_decay,
        deletion=recipe.highest_deletion_rate,
        short=recipe.short_crop_share,
        short_limit=recipe.short_crop_limit,
        every_position=EVERY_POSITION.format(weight=recipe.every_position_weight) if causal else "",
    )
    (out / "README.md").write_text(card, encoding="utf-8")
