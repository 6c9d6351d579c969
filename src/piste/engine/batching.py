"""Which questions go through the model together."""

from __future__ import annotations

from collections.abc import Sequence

from piste.subject import Question


def batches(questions: Sequence[Question], budget: int) -> list[list[Question]]:
    """Longest first, each batch at most ``budget`` tokens as padded (rows × longest row).

    Sorting keeps padding small; beginning with the longest finds out at once whether memory
    suffices.

    >>> lengths = [Question(str(n), n, None) for n in (3, 9, 2, 8)]
    >>> [[q.length for q in batch] for batch in batches(lengths, 20)]
    [[9, 8], [3, 2]]
    """
    ordered = sorted(questions, key=lambda question: -question.length)
    result: list[list[Question]] = []
    for question in ordered:
        if result and (len(result[-1]) + 1) * max(result[-1][0].length, 1) <= budget:
            result[-1].append(question)
        else:
            result.append([question])
    return result
