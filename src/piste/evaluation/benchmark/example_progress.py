"""Progress over examples."""

from __future__ import annotations

from piste.engine import Progress, ProgressOption


class ExampleProgress(Progress):
    """Counts examples, each in as many steps as there are methods.

    A function that is given as the option hears of whole examples only.
    """

    title = "evaluating examples"

    def __init__(self, option: ProgressOption, done: int, total: int, steps: int) -> None:
        super().__init__(option)
        self.done, self.total = done, total
        self._steps = max(steps, 1)

    def step(self) -> None:
        """One method of an example is explained."""
        # Never a whole example before it is judged and stored.
        self.done += 0.9 / self._steps
        self.show()

    def example(self) -> None:
        """An example is finished."""
        self.advance(int(self.done) + 1 - self.done)
