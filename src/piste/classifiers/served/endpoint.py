"""The two endpoints, chat and completions: what is sent, and how log-probabilities are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from piste.classifiers.prompted.prompt import continuation
from piste.classifiers.served.client import Client, Read, Refused, Unreadable

Turns: TypeAlias = tuple[tuple[str | None, str], ...]
"""Roles and contents; a prompt that is one text is one turn without a role."""
PromptOption: TypeAlias = Literal["prompt_logprobs", "echo"]

_HALF = "\N{REPLACEMENT CHARACTER}"
_SLACK = 1e-3  # rounding may lift a log-probability a little above zero


@dataclass(frozen=True)
class Generated:
    """A token the server generated: its log-probability, and those of the likeliest in its place.

    Tokens are bytes, because a token may be half a character.
    """

    token: bytes
    logprob: float
    top: dict[bytes, float]


@dataclass(frozen=True)
class Given:
    """A token of what the server was given, with its log-probability; the first one has none."""

    text: str
    logprob: float | None
    id: int | None = None


class Endpoint:
    """Asks one of the endpoints of a server."""

    def __init__(self, client: Client, model: str | None, *, chat: bool) -> None:
        self.client = client
        self.chat = chat
        self._model = model
        self._path = "/chat/completions" if chat else "/completions"

    @property
    def name(self) -> str:
        return "chat" if self.chat else "completions"

    def continued(self, turns: Turns, wording: str) -> str:
        """A wording as the answer to the prompt: in a text behind a blank, where one is missing."""
        return wording if self.chat else continuation(turns[-1][1], wording)

    def generate(self, turns: Turns, *, top: int, tokens: int = 1) -> list[Generated] | None:
        """Greedy tokens behind the prompt, up to a line's end; None if there are no log-probs."""
        stop: dict[str, Any] = {"stop": ["\n"]} if tokens > 1 else {}
        return self._generate(_generated, turns, "", top=top, tokens=tokens, **stop)

    def likeliest(self, turns: Turns, answer: str = "", *, top: int) -> dict[bytes, float]:
        """The likeliest next tokens and their log-probabilities."""
        return self._generate(_first, turns, answer, top=top)

    def named(self, turns: Turns, ids: Sequence[int]) -> list[float]:
        """The log-probabilities of these tokens as the first of the answer."""
        names = [f"token_id:{number}".encode() for number in ids]

        def read(content: Any) -> list[float]:
            found = _first(content)
            return [found[name] for name in names]

        more: dict[str, Any] = {"logprob_token_ids": list(ids), "return_tokens_as_token_ids": True}
        return self._generate(read, turns, "", top=len(ids), **more)

    def given(self, turns: Turns, answer: str, option: PromptOption) -> list[Given] | None:
        """The tokens of prompt and answer; None if the server leaves out log-probs."""
        return self._given(_READ[option], turns, answer, option)

    def answered(self, turns: Turns, answer: str, option: PromptOption) -> list[Given]:
        """The tokens of the answer, which the server is given behind the prompt."""

        def read(content: Any) -> list[Given]:
            found = behind_prompt(_READ[option](content), answer)
            if found is None:
                raise Unreadable("the answer lacks the log-probabilities of the prompt")
            return found

        return self._given(read, turns, answer, option)

    def _generate(
        self,
        read: Callable[[Any], Read],
        turns: Turns,
        answer: str,
        *,
        top: int,
        tokens: int = 1,
        **more: Any,
    ) -> Read:
        body = self._body(turns, answer) | {"max_tokens": tokens, **more}
        body |= {"logprobs": True, "top_logprobs": top} if self.chat else {"logprobs": top}
        return self.client.post(self._path, body, read)

    def _given(
        self, read: Callable[[Any], Read], turns: Turns, answer: str, option: PromptOption
    ) -> Read:
        more = {"max_tokens": 0, "echo": True, "logprobs": 1}
        if option == "prompt_logprobs":
            more = {"max_tokens": 1, "prompt_logprobs": 0}
        return self.client.post(self._path, self._body(turns, answer) | more, read)

    def _body(self, turns: Turns, answer: str) -> dict[str, Any]:
        body: dict[str, Any] = {} if self._model is None else {"model": self._model}
        body |= {"temperature": 0}
        if not self.chat:
            return body | {"prompt": turns[0][1] + answer}
        messages = [{"role": role or "user", "content": text} for role, text in turns]
        if answer:
            messages.append({"role": "assistant", "content": answer})
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        return body | {"messages": messages}


def behind_prompt(tokens: list[Given] | None, answer: str) -> list[Given] | None:
    """The last tokens, those of the answer; None if they are not its text.

    White space is not compared: some servers leave it out of single tokens.

    >>> tokens = [Given("Well", None), Given(":", -1.0), Given(" so", -2.0), Given(" so", -3.0)]
    >>> [token.logprob for token in behind_prompt(tokens, " so so")]
    [-2.0, -3.0]
    """
    wanted, text, size = _squeezed(answer), "", 0
    for token in reversed(tokens or ()):
        text, size = _squeezed(token.text) + text, size + 1
        if len(text) >= len(wanted):
            break
    if not tokens:
        return None
    if text != wanted or size == len(tokens) or tokens[-size].logprob is None:
        return None  # another text, or no prompt before it
    blank_apart = answer[:1].isspace() and not tokens[-size].text[:1].isspace()
    before = tokens[-size - 1]
    if blank_apart and before.text.isspace() and before.logprob is not None:
        size += 1
    return tokens[-size:]


def _squeezed(text: str) -> str:
    return "".join(text.split())


def joined(turns: Sequence[tuple[str | None, str]]) -> str:
    """All contents as one text."""
    return "\n\n".join(text for _, text in turns)


def _generated(content: Any) -> list[Generated] | None:
    choice = content["choices"][0]
    found = choice.get("logprobs")
    if not found:
        return None
    if found.get("content") is not None:  # the form of chats, which some use for both
        return [
            Generated(
                _bytes(one),
                _checked(one["logprob"]),
                {_bytes(other): _checked(other["logprob"]) for other in one["top_logprobs"]},
            )
            for one in found["content"]
        ]
    tokens, tops = found.get("tokens"), found.get("top_logprobs")
    if not tokens or not tops:
        return None
    return [
        Generated(
            token.encode(),
            _checked(logprob),
            {other.encode(): _checked(value) for other, value in top.items()},
        )
        for token, logprob, top in zip(tokens, found["token_logprobs"], tops, strict=True)
    ]


def _first(content: Any) -> dict[bytes, float]:
    """The first generated token and those in its place."""
    found = _generated(content)
    if not found or not found[0].top:
        choice = content["choices"][0]
        if _HALF in str(choice.get("text") or choice.get("message", {}).get("content") or ""):
            # llama.cpp says so every time: no later try would be better.
            raise Refused(200, "it gives no log-probabilities of a token that is half a character")
        raise Unreadable("the answer lacks top_logprobs")
    return {found[0].token: found[0].logprob, **found[0].top}


def _echoed(content: Any) -> list[Given] | None:
    found = content["choices"][0].get("logprobs") or {}
    if not found.get("tokens") or not found.get("token_logprobs"):
        return None
    pairs = zip(found["tokens"], found["token_logprobs"], strict=True)
    return [Given(token, None if value is None else _checked(value)) for token, value in pairs]


def _prompt_logprobs(content: Any) -> list[Given] | None:
    found = content.get("prompt_logprobs") or content["choices"][0].get("prompt_logprobs")
    if not found:
        return None
    given = []
    for place in found:
        if not place:
            given.append(Given("", None))
            continue
        number, one = next(iter(place.items()))  # the token that stands there comes first
        given.append(
            Given(str(one.get("decoded_token") or ""), _checked(one["logprob"]), int(number))
        )
    return given


_READ: dict[PromptOption, Callable[[Any], list[Given] | None]] = {
    "prompt_logprobs": _prompt_logprobs,
    "echo": _echoed,
}


def _bytes(one: Any) -> bytes:
    own = one.get("bytes")
    return bytes(own) if own else str(one["token"]).encode()


def _checked(logprob: Any) -> float:
    number = float(logprob)
    if math.isnan(number) or number > _SLACK:
        raise Unreadable(f"{number} is no log-probability")
    return min(number, 0.0)
