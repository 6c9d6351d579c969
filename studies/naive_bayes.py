"""Table 2a: do SLALOM's scores rank words as a naive Bayes model of the same data does?

Counting words of the training texts by class gives every word a linear score, the evidence
log p(w | positive) / p(w | negative). Nobody would explain a transformer by it, but words that
hardly ever stand in good reviews should look bad to a model that learned from them. Importances
have no direction and are held against the evidence's size.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from piste.evaluation import Example, read_data
from studies import judged
from studies.base import Findings, Study, Work, graded
from studies.judged import average, draw, judge, readers, table, tested
from studies.reviews import made_up

COLUMNS = tuple(judged.COLUMNS)[:5]
_FIGURE = "spearman_nb"
_PAPER = {
    "DistilBERT": ("", "", "0.69", "0.32", "0.70"),
    "BERT": ("", "", "0.75", "0.43", "0.77"),
    "GPT-2": ("", "", "0.70", "0.40", "0.70"),
}


class AgreementWithNaiveBayes(Study):
    """Reviews, explained and held against counted words."""

    name: ClassVar[str] = "naive-bayes"
    title: ClassVar[str] = "SLALOM's scores and naive Bayes"

    def run(self, work: Work) -> Findings:
        """Explain by every model, and correlate."""
        models = readers(work, "imdb")
        work.plan(len(models))
        found = {
            name: work.part(name, partial(self.measure, name, load, work))
            for name, load in models.items()
        }
        linear, sizes, ours = (
            [average(one, column, _FIGURE).centre for one in found.values()]
            for column in ("lin., paper", "importances, paper", "contributions")
        )
        title = "Spearman correlation with naive Bayes, mean over texts (95 % interval)"
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [table(title, found, _FIGURE, COLUMNS, _PAPER)],
            [
                (
                    "linear scores agree with naive Bayes by 0.70 to 0.77",
                    f"by {min(linear):.2f} to {max(linear):.2f}; contributions of Piste's default "
                    f"by {min(ours):.2f} to {max(ours):.2f}",
                    _of_its_order(min(linear), 0.70),
                ),
                (
                    "importances agree with the evidence's size by 0.32 to 0.43",
                    f"by {min(sizes):.2f} to {max(sizes):.2f}",
                    _of_its_order(min(sizes), 0.32),
                ),
            ],
            {"correlations": partial(draw, found, _FIGURE, COLUMNS, "Spearman correlation")},
        )

    def measure(self, name: str, load: Any, work: Work) -> dict[str, Any]:
        """Correlations of all scores, text by text."""
        classifier = load()
        texts, labelled = _data(work)
        samples = 200 if work.quick else 500
        found = judge(
            work, name, classifier, texts, COLUMNS, "naive_bayes", samples, labelled=labelled
        )
        if not work.quick:
            found["accuracy"] = tested(work, classifier, work.need("imdb.parquet", "data"))
        return found


def _data(work: Work) -> tuple[list[Example], list[Example]]:
    """Texts to explain, and those whose words are counted."""
    if work.quick:
        return made_up(6, seed=work.seed + 1), made_up(600, seed=work.seed)
    path = work.need("imdb.parquet", "data")
    texts = read_data(path, split="test", examples=30, seed=work.seed, words=(0, 150))
    return texts, read_data(path, split="train", shuffle=False)


def _of_its_order(ours: float, theirs: float) -> str:
    """As high as the paper's lowest, at least half of it, or less."""
    return graded(ours >= theirs, ours >= theirs / 2)


STUDY = AgreementWithNaiveBayes()
