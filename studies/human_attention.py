"""Table 2b: do SLALOM's scores find the words that people mark as the reason?

Yelp-HAT has reviews of 50, 100 and 200 words in which three people marked the words they judged
by; a word counts as marked if all three did. Models learned from other Yelp reviews. The area
under the ROC curve says how well the size of a word's score tells marked from unmarked words.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from piste.evaluation import Example, read_data
from studies import judged
from studies.base import Findings, Study, Work, shown
from studies.judged import draw, judge, lead, readers, table, tested, verdict
from studies.reviews import made_up

COLUMNS = tuple(judged.COLUMNS)[:7]
_SIZES = (50, 100, 200)
_FIGURE = "auroc"
_PAPER = {
    "DistilBERT": ("", "", "0.68", "0.73", "0.71", "0.67", "0.69"),
    "BERT": ("", "", "0.57", "0.72", "0.64", "0.63", "0.68"),
    "GPT-2": ("", "", "0.67", "0.67", "0.67", "0.64", "0.60"),
}


class HumanAttention(Study):
    """Reviews that people marked, explained."""

    name: ClassVar[str] = "human-attention"
    title: ClassVar[str] = "SLALOM's scores and what people marked"

    def run(self, work: Work) -> Findings:
        """Explain by every model, and compare with the marks."""
        models = readers(work, "yelp_polarity")
        sizes = (0,) if work.quick else _SIZES
        work.plan(len(models) * len(sizes))
        found = {}
        for name, load in models.items():
            for words in sizes:
                row = name if work.quick else f"{name}, {words} words"
                found[row] = work.part(row, partial(self.measure, row, load, words, work))
        leads = [lead(found, "importances, paper", other, _FIGURE) for other in ("LIME", "SHAP")]
        linear = [lead(found, "lin., paper", other, _FIGURE) for other in ("LIME", "SHAP")]
        ours = [lead(found, "contributions", other, _FIGURE) for other in ("LIME", "SHAP")]
        title = "Area under the ROC curve, mean over reviews (95 % interval)"
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [table(title, found, _FIGURE, COLUMNS, _PAPER)],
            [
                (
                    "importances find marked words better than LIME and SHAP do",
                    f"better than LIME by {shown(leads[0], 3)}, than SHAP by {shown(leads[1], 3)}",
                    verdict(leads),
                ),
                (
                    "so do linear scores",
                    f"Piste's default: better than LIME by {shown(ours[0], 3)}, "
                    f"than SHAP by {shown(ours[1], 3)}; in the paper's form by "
                    f"{shown(linear[0], 3)} and {shown(linear[1], 3)}",
                    verdict(ours),
                ),
            ],
            {"marked": partial(draw, found, _FIGURE, COLUMNS, "area under the ROC curve")},
        )

    def measure(self, row: str, load: Any, words: int, work: Work) -> dict[str, Any]:
        """Areas of all scores, review by review."""
        classifier = load()
        samples = 150 if work.quick else 200
        found = judge(work, row, classifier, _data(work, words), COLUMNS, "rationale", samples)
        if words == _SIZES[0]:
            path = work.need("yelp_polarity.parquet", "data")
            found["accuracy"] = tested(work, classifier, path)
        return found


def _data(work: Work, words: int) -> list[Example]:
    """Reviews with the words all people marked; those without one can't be judged."""
    if work.quick:
        return made_up(6, seed=work.seed + 1)
    examples = read_data(
        work.need("yelp_hat.parquet", "data"),
        rationale="att_and",
        words_column="words",
        words=(words, words),
        seed=work.seed,
    )
    marked = [one for one in examples if any(getattr(one.rationale, "marks", ()))]
    return marked[:12]


STUDY = HumanAttention()
