"""Tables 2c and 9: whose ranking of words is faithful to the model?

The words with the highest scores are deleted from the review, more and more of them, or put into
an empty one. The area over the curve of the predicted class's probability should be high for
deletion and low for insertion. Everybody who asks about removals gets the same number of questions.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from piste.evaluation import Example, read_data
from studies import judged
from studies.base import Findings, Study, Work, shown
from studies.judged import draw, judge, lead, readers, table, tested, verdict
from studies.reviews import made_up

COLUMNS = tuple(judged.COLUMNS)
_LEVEL = 0.01
"""Areas this near are level: those of the paper's rows are."""
_PAPER_DELETION = {
    "DistilBERT": ("", "", "0.913", "0.249", "0.915", "0.892", "0.876", "0.360", "0.387"),
    "BERT": ("", "", "0.943", "0.262", "0.944", "0.939", "0.929", "0.093", "0.093"),
    "GPT-2": ("", "", "0.907", "0.294", "0.908", "0.905", "0.895", "0.378", "0.436"),
}
_PAPER_INSERTION = {
    "DistilBERT": ("", "", "0.041", "0.442", "0.040", "0.041", "0.044", "0.439", "0.343"),
    "BERT": ("", "", "0.011", "0.293", "0.010", "0.009", "0.010", "0.482", "0.497"),
    "GPT-2": ("", "", "0.088", "0.531", "0.088", "0.089", "0.100", "0.617", "0.559"),
}


class Faithfulness(Study):
    """Reviews, explained, taken apart and put together again."""

    name: ClassVar[str] = "faithfulness"
    title: ClassVar[str] = "Whose ranking of words is faithful?"

    def run(self, work: Work) -> Findings:
        """Explain by every model and method, and ask about deletions and insertions."""
        models = readers(work, "imdb")
        work.plan(len(models))
        found = {
            name: work.part(name, partial(self.measure, name, load, work))
            for name, load in models.items()
        }
        deleting = [lead(found, "lin., paper", other, "aopc") for other in ("LIME", "SHAP")]
        ours = [lead(found, "contributions", other, "aopc") for other in ("LIME", "SHAP")]
        whites = [lead(found, "lin., paper", other, "aopc") for other in ("IG", "Grad")]
        # Low insertion is good, so the others' lead is what SLALOM is better by.
        inserting = [lead(found, other, "lin., paper", "insertion") for other in ("LIME", "SHAP")]
        over = "mean over reviews (95 % interval)"
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [
                table(f"Deletion, higher is better, {over}", found, "aopc", COLUMNS,
                      _PAPER_DELETION),
                table(f"Insertion, lower is better, {over}", found, "insertion", COLUMNS,
                      _PAPER_INSERTION),
            ],
            [
                (
                    "deletion: linear SLALOM is above LIME and SHAP",
                    f"above LIME by {shown(deleting[0], 3)}, above SHAP by {shown(deleting[1], 3)}",
                    verdict(deleting),
                ),
                (
                    "(Piste's default)",
                    f"above LIME by {shown(ours[0], 3)}, above SHAP by {shown(ours[1], 3)}",
                    verdict(ours),
                ),
                (
                    "insertion: linear SLALOM is level with LIME and SHAP",
                    f"better than LIME by {shown(inserting[0], 3)}, "
                    f"than SHAP by {shown(inserting[1], 3)}",
                    "holds" if all(one.centre > -_LEVEL for one in inserting) else "does not hold",
                ),
                (
                    "integrated gradients and gradients are far below in deletion",
                    f"below by {shown(whites[0], 3)} and {shown(whites[1], 3)}",
                    verdict(whites),
                ),
            ],
            {
                "deletion": partial(draw, found, "aopc", COLUMNS, "deletion AOPC"),
                "insertion": partial(draw, found, "insertion", COLUMNS, "insertion AOPC"),
            },
        )  # fmt: skip

    def measure(self, name: str, load: Any, work: Work) -> dict[str, Any]:
        """Both areas of all scores, review by review."""
        classifier = load()
        samples = 150 if work.quick else 300
        found = judge(
            work, name, classifier, _data(work), COLUMNS, "deletion,insertion,fidelity", samples
        )
        if not work.quick:
            found["accuracy"] = tested(work, classifier, work.need("imdb.parquet", "data"))
        return found


def _data(work: Work) -> list[Example]:
    if work.quick:
        return made_up(6, seed=work.seed + 1)
    path = work.need("imdb.parquet", "data")
    return read_data(path, split="test", examples=16, seed=work.seed, words=(0, 130))


STUDY = Faithfulness()
