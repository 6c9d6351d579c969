"""Finds out what a server really returns, and the best way to score labels by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from piste.classifiers.prompted.prompt import Prompt
from piste.classifiers.served.client import Client, FailedRequestError, Refused
from piste.classifiers.served.endpoint import (
    Endpoint,
    Given,
    PromptOption,
    Turns,
    behind_prompt,
    joined,
)
from piste.classifiers.served.scoring import (
    Paths,
    PromptScoring,
    Scoring,
    TokenIdScoring,
    TopScoring,
)
from piste.errors import ServiceError

_SAMPLE = "This is a text."
_TOPS = (500, 100, 20, 5, 1)
"""Lengths of lists that are tried; servers refuse those above their own limit."""
AGREE = 0.1
"""How far two log-probabilities of one token may lie apart; servers that batch round otherwise."""
_LONGEST = 16  # tokens of a wording
_USUAL_RATE = 0.3  # tokens per character, where the server counts none

Wordings = Sequence[tuple[str, Sequence[str]]]


@dataclass
class Findings:
    """What a server returns, and how labels are scored with it."""

    endpoint: Endpoint
    scoring: Scoring
    tokens_per_character: float = _USUAL_RATE
    returns: dict[str, Any] = field(default_factory=dict)
    """What was tried, and what came of it."""
    generation: int = 0
    """How often the server was seen to answer otherwise than before."""


def filled_turns(prompt: Prompt, values: Any) -> Turns:
    """Roles and contents of a filled prompt."""
    return tuple((turn.role, turn.text) for turn in prompt.turns(values))


def sample_turns(prompt: Prompt) -> Turns:
    """The prompt with a short text in every field."""
    return filled_turns(prompt, dict.fromkeys(prompt.fields, _SAMPLE))


def probe(
    client: Client, model: str | None, prompt: Prompt, labels: Mapping[str, Sequence[str]]
) -> Findings:
    """Try a server with the prompt and a short text.

    Best are the log-probabilities of named tokens, then those of the prompt's own tokens, then
    the list of the likeliest next tokens. A server without any is refused in one sentence.
    """
    return _Probe(client, model, prompt, labels).find()


class _Probe:
    """One round of tries."""

    def __init__(
        self,
        client: Client,
        model: str | None,
        prompt: Prompt,
        labels: Mapping[str, Sequence[str]],
    ) -> None:
        self.client = client
        self.turns = sample_turns(prompt)
        self.wordings: Wordings = list(labels.items())
        self.texts = [text for _, own in self.wordings for text in own]
        self.endpoint = Endpoint(client, model, chat=prompt.is_chat)
        self.model = model
        self.rate = _USUAL_RATE
        self.returns: dict[str, Any] = {}

    def find(self) -> Findings:
        top, likeliest = self._top_logprobs()
        scoring: Scoring | None = self._from_prompt(likeliest)
        if scoring is None:
            if not likeliest:
                raise ServiceError(
                    f"{self.client.url} returns no log-probabilities, neither of generated tokens "
                    "nor of prompts: use a server that does, such as vLLM or llama.cpp."
                )
            scoring = self._from_top(top)
        self.returns["endpoint"] = self.endpoint.name
        return Findings(self.endpoint, scoring, self.rate, self.returns)

    # -- generated tokens --------------------------------------------------------------------

    def _top_logprobs(self) -> tuple[int, dict[bytes, float]]:
        """The longest list the server gives, and its length; empty if there is none."""
        try:
            found = self._longest_list()
        except Refused as problem:
            if self.endpoint.chat or problem.status not in (404, 405, 501):
                raise self._unusable(problem) from problem
            # Many servers have chats only: the prompt is then the message of a user.
            self.endpoint = Endpoint(self.client, self.model, chat=True)
            self.returns["completions"] = "refused: the prompt is sent as a message of the user"
            try:
                found = self._longest_list()
            except Refused as again:
                raise self._unusable(again) from again
        self.returns["top_logprobs"] = len(found)
        return len(found), found

    def _longest_list(self) -> dict[bytes, float]:
        problem: Refused | None = None
        for top in _TOPS:
            before = self.client.tokens
            try:
                tokens = self.endpoint.generate(self.turns, top=top)
                if tokens is None:  # once more: an answer may be broken in any way
                    tokens = self.endpoint.generate(self.turns, top=top)
            except Refused as refused:
                if refused.status in (404, 405, 501):
                    raise
                problem = refused
                continue
            if used := self.client.tokens - before:
                self.rate = used / max(len(joined(self.turns)), 1)
            return tokens[0].top if tokens else {}
        assert problem is not None
        raise problem

    def _unusable(self, problem: Refused) -> ServiceError:
        return ServiceError(
            f"{self.client.url} refuses the {self.endpoint.name} request ({problem}): check the "
            "URL, the model's name, and whether the server gives log-probabilities."
        )

    # -- tokens of the prompt ------------------------------------------------------------------

    def _from_prompt(self, likeliest: dict[bytes, float]) -> Scoring | None:
        options: list[PromptOption] = ["prompt_logprobs"]
        if not self.endpoint.chat:
            options.append("echo")
        for option in options:
            tokens = self._wordings_given(option, likeliest)
            if tokens is None:
                continue
            coded = {text: tuple(map(_code, path)) for text, path in tokens.items()}
            paths = Paths.of(self.wordings, coded)
            named = self._named_tokens(paths, tokens)
            return named or PromptScoring(self.endpoint, paths, option)
        return None

    def _wordings_given(
        self, option: PromptOption, likeliest: dict[bytes, float]
    ) -> dict[str, list[Given]] | None:
        """The tokens of every wording behind the prompt, if what comes looks right."""
        found: dict[str, list[Given]] = {}
        for wording in self.texts:
            answer = self.endpoint.continued(self.turns, wording)
            tokens, problem = attempt(
                lambda answer=answer: self.endpoint.given(self.turns, answer, option)  # type: ignore[misc]  # bound here
            )
            own = behind_prompt(tokens, answer)
            if problem or tokens is None:
                self.returns[option] = problem or "not returned"
            elif own is None:
                self.returns[option] = "returned, but not for the text that was sent"
            elif not _agree(own[0], likeliest):
                self.returns[option] = "returned, but unlike those of generated tokens"
            else:
                found[wording] = own
                continue
            return None
        self.returns[option] = "returned"
        return found

    def _named_tokens(
        self, paths: Paths, tokens: Mapping[str, Sequence[Given]]
    ) -> TokenIdScoring | None:
        ids = [tokens[text][0].id for text in paths.texts]
        known = [number for number in ids if number is not None]
        if not paths.single or len(known) < len(ids):
            return None
        found, problem = attempt(lambda: self.endpoint.named(self.turns, known))
        exact = [tokens[text][0].logprob or 0.0 for text in paths.texts]
        if problem or found is None:
            self.returns["logprob_token_ids"] = problem or "not returned"
            return None
        if any(abs(a - b) > AGREE for a, b in zip(found, exact, strict=True)):
            self.returns["logprob_token_ids"] = "returned, but unlike those of the prompt"
            return None
        self.returns["logprob_token_ids"] = "returned"
        return TokenIdScoring(self.endpoint, paths, tuple(known))

    # -- the likeliest tokens ------------------------------------------------------------------

    def _from_top(self, top: int) -> TopScoring:
        pieces = {text: self._pieces(text, top) for text in self.texts}
        longer = [text for text, path in pieces.items() if len(path) > 1]
        asked = bool(longer) and all(map(_can_be_sent, pieces.values()))
        continues = asked and self._continues(longer[0], pieces[longer[0]], top)
        if longer:
            self.returns["continues an answer"] = continues
        if not continues:
            pieces = {text: path[:1] for text, path in pieces.items()}
        paths = Paths.of(self.wordings, pieces)
        return TopScoring(self.endpoint, paths, top, continues, not longer or continues)

    def _pieces(self, wording: str, top: int) -> tuple[bytes, ...]:
        """The tokens of a wording, seen when the server repeats it; else a guess by its list."""
        answer = self.endpoint.continued(self.turns, wording)
        whole = answer.encode()
        tokens = self.endpoint.generate(self._repeated(answer), top=top, tokens=_LONGEST)
        text, path = b"", list[bytes]()
        for one in tokens or ():
            if not one.token.isascii() and one.top and one.token not in one.top:
                # llama.cpp puts tokens together until a character is whole.
                raise ServiceError(
                    f"{self.client.url} does not tell the tokens of the label {wording!r}, which "
                    "are parts of characters: choose a wording that its model has tokens for."
                )
            text, path = text + one.token, [*path, one.token]
            if text == whole:
                return tuple(path)
            if not whole.startswith(text):
                break
        beginnings = [
            token
            for token in (tokens[0].top if tokens else ())
            if token and whole.startswith(token)
        ]
        first = max(beginnings, key=len, default=whole)
        return (first, whole[len(first) :]) if len(first) < len(whole) else (whole,)

    def _repeated(self, answer: str) -> Turns:
        """The prompt with this answer, twice, and the prompt: most models give it again."""
        if not self.endpoint.chat:
            text = self.turns[0][1]
            return ((None, f"{text}{answer}\n\n" * 2 + text),)
        system = tuple(turn for turn in self.turns if turn[0] == "system")
        others = tuple(turn for turn in self.turns if turn[0] != "system")
        return (*system, *((*others, ("assistant", answer)) * 2), *others)

    def _continues(self, wording: str, path: tuple[bytes, ...], top: int) -> bool:
        """Whether the server goes on with an answer that is begun."""
        if not self.endpoint.chat:
            return True
        turns = self._repeated(self.endpoint.continued(self.turns, wording))
        likeliest, _ = attempt(
            lambda: self.endpoint.likeliest(turns, path[0].decode(errors="replace"), top=top)
        )
        return likeliest is not None and next(iter(likeliest)) == path[1]


def _can_be_sent(path: Sequence[bytes]) -> bool:
    r"""Whether every beginning of a wording is a text: half a character can't be sent.

    >>> _can_be_sent(["½ l".encode(), b" more"]), _can_be_sent([b"\xc2", b"\xbd"])
    (True, False)
    """
    try:
        for size in range(1, len(path)):
            b"".join(path[:size]).decode()
    except UnicodeDecodeError:
        return False
    return True


def attempt(ask: Callable[[], Any]) -> tuple[Any, str]:
    """What came, or None and why the server does not do it."""
    try:
        return ask(), ""
    except Refused:
        return None, "refused"
    except FailedRequestError as problem:
        if not problem.answered:  # it says nothing about what the server can do
            raise
        return None, "failed"


def _agree(token: Given, likeliest: Mapping[bytes, float]) -> bool:
    """Whether a label's first token is as likely as in the list, if it is there."""
    seen = likeliest.get(token.text.encode())
    return seen is None or token.logprob is None or math.isclose(seen, token.logprob, abs_tol=AGREE)


def _code(token: Given) -> bytes:
    return token.text.encode() if token.id is None else str(token.id).encode()
