"""Methods that read attention: each by hand from the model's own, and what all of them promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.optimize import linprog

import piste
from piste import PisteError
from piste.classifiers.introspection.tracing import trace
from piste.data.storage import from_json
from piste.methods import METHODS, make
from piste.methods.attention_flow import maximum_flows
from piste.methods.attention_games import brute_force
from piste.target import Target
from tests.classifiers import images
from tests.classifiers.introspection.test_tracing import TRACED, state
from tests.conftest import FAMILIES, TEXT, build

ATTENTION = [name for name, method in METHODS.items() if method.needs == "attention"]
BY_CLASS = ["grad_sam", "gradient_rollout", "attention_shapley"]
PLAIN = [name for name in ATTENTION if name not in BY_CLASS]
SHAPLEY = [
    {"game": game, "gradient": gradient, "matrix": matrix, "present": present}
    for game in ("cls", "mutual", "max_mutual")
    for gradient in ("none", "relu", "signed")
    for matrix in ("mean", "rollout")
    for present in (False, True)
    if not (present and game == "cls")
]


class Own:
    """A model's own attention with the gradients of a class's log-odds, got the usual way."""

    def __init__(self, name: str, request: pytest.FixtureRequest, label: int = 0) -> None:
        kind, config, tokenizer = FAMILIES[name]
        self.tokenizer = request.getfixturevalue(tokenizer)
        self.model = build(kind, **config, attn_implementation="eager")
        self.classifier = piste.load(self.model, self.tokenizer)
        self.subject = self.classifier.subject(TEXT)
        ids = torch.tensor(self.tokenizer(TEXT)["input_ids"])[None]
        output = self.model(input_ids=ids, output_attentions=True, output_hidden_states=True)
        logits = output.logits[0]
        others = [k for k in range(len(logits)) if k != label]
        number = logits[label] - logits[others].logsumexp(dim=0)
        slopes = torch.autograd.grad(number, output.attentions)
        self.states = [one[0].detach().double().numpy() for one in output.hidden_states]
        self.weights = [one[0].detach().double().numpy() for one in output.attentions]
        self.slopes = [one[0].double().numpy() for one in slopes]
        self.reader = 0 if name == "bert" else ids.shape[1] - 1
        self.tokens = ids.shape[1]

    def units(self, tokens: Any) -> np.ndarray:
        owner = self.subject.token_units
        return np.array([tokens[owner == unit].sum() for unit in range(len(self.subject))])

    def score(self, method: str, **options: Any) -> np.ndarray:
        return piste.explain(
            self.classifier, TEXT, method=method, target=0, held_out=0, **options
        ).score()


@pytest.fixture(params=["bert", "gpt2-no-pad"])
def own(request: pytest.FixtureRequest) -> Own:
    return Own(request.param, request)


def test_attention_received_by_hand(own: Own) -> None:
    heads = np.concatenate(own.weights)
    received = np.array([heads[:, :, token].mean() for token in range(own.tokens)])
    np.testing.assert_allclose(own.score("attention"), own.units(received), atol=1e-6)
    read = heads[:, own.reader].mean(axis=0)
    np.testing.assert_allclose(own.score("attention", queries="reader"), own.units(read), atol=1e-6)
    last = own.weights[-1].mean(axis=(0, 1))
    np.testing.assert_allclose(own.score("attention", layers="last"), own.units(last), atol=1e-6)
    both = own.score("attention", layers="last", queries="reader")
    expected = own.units(own.weights[-1][:, own.reader].mean(axis=0))
    np.testing.assert_allclose(both, expected, atol=1e-6)


def test_rollout_by_hand(own: Own) -> None:
    row = np.eye(own.tokens)[own.reader]
    for weights in reversed(own.weights):
        row = 0.5 * row + 0.5 * row @ weights.mean(axis=0)
    assert row.sum() == pytest.approx(1)
    np.testing.assert_allclose(own.score("attention_rollout"), own.units(row), atol=1e-6)


def test_gradient_rollout_by_hand(own: Own) -> None:
    rolled = np.eye(own.tokens)
    for weights, slopes in zip(own.weights, own.slopes, strict=True):
        rolled = rolled + np.maximum(weights * slopes, 0).mean(axis=0) @ rolled
    row = rolled[own.reader]
    row[own.reader] -= 1
    np.testing.assert_allclose(own.score("gradient_rollout"), own.units(row), atol=1e-5)


def test_grad_sam_by_hand(own: Own) -> None:
    gives, gets = np.zeros(own.tokens), np.zeros(own.tokens)
    count = sum(len(weights) for weights in own.weights)
    for weights, slopes in zip(own.weights, own.slopes, strict=True):
        for head in range(len(weights)):
            product = weights[head] * np.maximum(slopes[head], 0)
            for token in range(own.tokens):
                gives[token] += product[token].sum() / count
                gets[token] += product[:, token].sum() / count
    np.testing.assert_allclose(own.score("grad_sam"), own.units(gives), atol=1e-5)
    np.testing.assert_allclose(own.score("grad_sam", received=True), own.units(gets), atol=1e-5)


def test_norms_by_hand(request: pytest.FixtureRequest) -> None:
    own = Own("bert", request)
    get = {name: tensor.double().numpy() for name, tensor in own.model.state_dict().items()}
    sizes = []
    for number, (weights, states) in enumerate(zip(own.weights, own.states[:-1], strict=True)):
        part = f"bert.encoder.layer.{number}.attention"
        values = states @ get[f"{part}.self.value.weight"].T + get[f"{part}.self.value.bias"]
        matrix, width = get[f"{part}.output.dense.weight"], values.shape[1] // 2
        size = np.empty((own.tokens, own.tokens))
        for i in range(own.tokens):
            for j in range(own.tokens):
                cuts = [slice(head * width, (head + 1) * width) for head in range(2)]
                carried = sum(
                    weights[head, i, j] * matrix[:, cut] @ values[j, cut]
                    for head, cut in enumerate(cuts)
                )
                size[i, j] = np.linalg.norm(carried)
        sizes.append(size)
    mean = np.mean(sizes, axis=0)
    expected = own.units(mean.mean(axis=0))
    np.testing.assert_allclose(own.score("attention_norms"), expected, rtol=1e-4)
    expected = own.units(sizes[-1][0])
    both = own.score("attention_norms", layers="last", queries="reader")
    np.testing.assert_allclose(both, expected, rtol=1e-4)


def test_norms_without_a_projection_are_those_of_heads_side_by_side(wordpiece: Any) -> None:
    classifier = piste.load(build("xlnet", **FAMILIES["xlnet"][1]), wordpiece)
    e = piste.explain(classifier, TEXT, method="attention_norms", target=0, held_out=0)
    assert e.settings["projected"] is False
    found = trace(classifier.gradient_access(classifier.subject(TEXT), e.target))
    sizes = [
        np.linalg.norm(layer.weights[..., None] * layer.values[:, None], axis=(0, 3))
        for layer in found.layers
    ]
    expected = found.per_unit(np.mean(sizes, axis=0).mean(axis=0))
    np.testing.assert_allclose(e.score(), expected)


# -- flow ------------------------------------------------------------------------------------------


def test_flow_by_hand() -> None:
    """Two layers of three tokens, read from token 0: every number by a narrowest edge.

    Layer 2 gives 0.6, 0.3 and 0.1 to the tokens below; to input 0 they can pass on 0.5, 0.2 and
    0, to input 1 0.5, 0.1 and 0, to input 2 0, 0.7 and 1.
    """
    first = np.array([[0.5, 0.5, 0.0], [0.2, 0.1, 0.7], [0.0, 0.0, 1.0]])
    second = np.array([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    found = maximum_flows([first, second], np.array([0]), np.arange(3))
    np.testing.assert_allclose(found, [0.5 + 0.2 + 0, 0.5 + 0.1 + 0, 0 + 0.3 + 0.1], atol=1e-7)


def test_flow_agrees_with_a_linear_program() -> None:
    rng = np.random.default_rng(0)
    tokens, sources = 5, np.array([1, 4])
    maps = [0.5 * np.eye(tokens) + 0.5 * rng.dirichlet(np.full(tokens, 0.3), tokens)] * 3
    found = maximum_flows(maps, sources, np.arange(tokens))
    edges: list[Any] = [("begin", (3, int(r)), 0.5) for r in sources]
    for layer, one in enumerate(maps):
        edges += [
            ((layer + 1, i), (layer, j), one[i, j]) for i in range(tokens) for j in range(tokens)
        ]
    for sink in range(tokens):
        inner = {node for edge in edges for node in edge[:2]} - {"begin", (0, sink)}
        balance = [
            [float(edge[1] == node) - float(edge[0] == node) for edge in edges] for node in inner
        ]
        solved = linprog(
            [-float(edge[0] == "begin") for edge in edges],
            A_eq=balance,
            b_eq=np.zeros(len(inner)),
            bounds=[(0, edge[2]) for edge in edges],
        )
        assert found[sink] == pytest.approx(-solved.fun, abs=1e-6)


def test_flow_follows_the_edges_of_rollout(own: Own) -> None:
    maps = [0.5 * np.eye(own.tokens) + 0.5 * weights.mean(axis=0) for weights in own.weights]
    expected = np.zeros(own.tokens)
    real = np.flatnonzero(own.subject.token_units >= 0)
    expected[real] = maximum_flows(maps, np.array([own.reader]), real)
    np.testing.assert_allclose(own.score("attention_flow"), own.units(expected), atol=1e-5)
    assert (own.score("attention_flow") >= own.score("attention_rollout") - 1e-6).all()


def test_long_inputs_are_refused_with_what_to_do(bert: Any) -> None:
    with pytest.raises(PisteError, match=r"26 tokens.*1352 edges.*attention_rollout.*most_tokens"):
        piste.explain(bert, TEXT, method="attention_flow", most_tokens=20)


# -- shapley ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", SHAPLEY, ids=lambda one: "-".join(map(str, one.values())))
def test_shapley_values_are_those_of_all_coalitions(options: Any, reviews_gpt: Any) -> None:
    text = "What a bad and boring unwatchable film"
    e = piste.explain(reviews_gpt, text, method="attention_shapley", held_out=0, **options)
    found = trace(reviews_gpt.gradient_access(reviews_gpt.subject(text), e.target))
    method: Any = make("attention_shapley", options)
    expected = brute_force(method.play(found).worth, len(e))
    np.testing.assert_allclose(e.score(), expected, atol=1e-12)
    assert e.ranking == ("attribution" if options["gradient"] == "signed" else "sensitivity")


def test_the_games_are_played_with_the_models_own_attention(own: Own) -> None:
    owner, n = own.subject.token_units, len(own.subject)
    heads, slopes = np.concatenate(own.weights), np.concatenate(own.slopes)
    for gradient, factor in (("none", 1), ("relu", np.maximum(slopes, 0)), ("signed", slopes)):
        mean = (heads * factor).mean(axis=0)
        score = own.score("attention_shapley", game="cls", gradient=gradient)
        np.testing.assert_allclose(score, own.units(mean[own.reader]), atol=1e-5)
        between = np.empty((n, n))
        for i in range(n):
            rows = mean[owner == i].mean(axis=0)
            for j in range(n):
                between[i, j] = rows[owner == j].sum()
        diagonal = np.diagonal(between)
        for game, both in (
            ("mutual", between + between.T),
            ("max_mutual", np.maximum(between, between.T)),
        ):
            pairs = both.sum(axis=1) - np.diagonal(both)
            expected = pairs / 2 + diagonal / n - (diagonal.sum() - diagonal) / (n * (n - 1))
            score = own.score("attention_shapley", game=game, gradient=gradient, present=False)
            np.testing.assert_allclose(score, expected, atol=1e-5)


def test_a_present_reader_brings_what_it_shares_with_each(own: Own) -> None:
    owner, n = own.subject.token_units, len(own.subject)
    mean = np.concatenate(own.weights).mean(axis=0)
    given = own.units(mean[own.reader])
    got = np.array([mean[owner == unit, own.reader].mean() for unit in range(n)])
    without = own.score("attention_shapley", game="mutual", gradient="none")
    having = own.score("attention_shapley", game="mutual", gradient="none", present=True)
    diagonal = np.array([mean[np.ix_(owner == k, owner == k)].sum(1).mean() for k in range(n)])
    alone = diagonal / n - (diagonal.sum() - diagonal) / (n * (n - 1))
    expected = without - alone + given + got - mean[own.reader, own.reader] / n
    np.testing.assert_allclose(having, expected, atol=1e-6)


def test_the_reader_is_present_by_itself_with_signed_gradients_only(bert: Any) -> None:
    for game in ("mutual", "max_mutual"):
        for gradient, present in (("none", False), ("relu", False), ("signed", True)):
            options = {"game": game, "gradient": gradient, "held_out": 0}
            e, same = (
                piste.explain(bert, TEXT, method="attention_shapley", **options, **more)
                for more in ({}, {"present": present})
            )
            assert e.settings["present"] is same.settings["present"] is present
            np.testing.assert_array_equal(e.score(), same.score())
    cls = piste.explain(bert, TEXT, method="attention_shapley", game="cls", held_out=0)
    assert cls.settings["present"] is False


def test_decoders_share_in_one_direction_only(reviews_gpt: Any) -> None:
    for gradient in ("none", "relu"):  # without signs the larger one is the only one
        scores = [
            piste.explain(
                reviews_gpt, TEXT, method="attention_shapley", game=game, gradient=gradient
            ).score()
            for game in ("mutual", "max_mutual")
        ]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-12)


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_attention_alone_knows_no_class(name: str, bert: Any) -> None:
    one, other = (
        piste.explain(bert, TEXT, method=name, target=label, held_out=0).score() for label in (0, 1)
    )
    np.testing.assert_allclose(one, other, atol=1e-12)
    every = piste.explain(bert, TEXT, method=name, target="all")
    assert every.scores["sensitivity"].shape == (len(every),)
    np.testing.assert_allclose(every.score(label=2), one, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in BY_CLASS]
    + [("attention_shapley", {"game": game, "gradient": "relu"}) for game in ("cls", "mutual")]
    + [("attention_shapley", {"game": "max_mutual", "gradient": "signed", "present": True})],
)
def test_gradients_make_it_a_matter_of_the_class(name: str, options: Any, bert: Any) -> None:
    every = piste.explain(bert, TEXT, method=name, target="all", held_out=0, **options)
    assert every.score("sensitivity" if "sensitivity" in every.scores else None).ndim == 1
    assert every.calls == 2  # the input, and one pass for all classes
    for label in range(3):
        one = piste.explain(
            bert, TEXT, method=name, target=lambda z, k=label: z[:, k] - z.mean(1), **options
        )
        np.testing.assert_allclose(every.score(label=label), one.score(), atol=1e-6)


@pytest.mark.parametrize("name", ATTENTION)
def test_what_every_method_promises(name: str, bert: Any) -> None:
    e = piste.explain(bert, TEXT, method=name)
    assert e.calls == 2 + e.fidelity.questions
    assert e.predict(range(len(e))) == pytest.approx(e.output.value)
    assert e.predict([0, 1]) == pytest.approx(e.predict([]) + e.score()[:2].sum())
    every = piste.explain(bert, TEXT, method=name, target="all")
    whole = every.target(np.array([every.output.logits]))[0]
    np.testing.assert_allclose(every.predict(range(len(e))), whole)
    assert np.asarray(every.predict(np.eye(len(e), dtype=bool))).shape == (len(e), 3)
    again = from_json(every.to_json())
    np.testing.assert_allclose(again.predict([1]), every.predict([1]))
    masked = piste.explain(bert, TEXT, method=name, removal="mask")
    np.testing.assert_array_equal(masked.score(), e.score())
    for shown in (e, every):
        assert "<html" in shown.to_html()
        shown.plot()
        shown.__rich__()


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("text", ["Good", "Good film", "unwatchable"])
def test_hardly_any_units(name: str, text: str, reviews: Any, reviews_gpt: Any) -> None:
    for classifier in (reviews, reviews_gpt):
        e = piste.explain(classifier, text, method=name)
        assert np.isfinite(e.score()).all()
        assert np.isfinite(e.predict([0]))


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("family", ["bert", "distilbert", "llama-no-pad", "modernbert"])
def test_the_way_attention_is_computed_makes_no_difference(
    name: str, family: str, request: pytest.FixtureRequest
) -> None:
    kind, config, tokenizer = TRACED[family]
    scores = []
    for attention in ("sdpa", "eager"):
        model = build(kind, **config, attn_implementation=attention)
        classifier = piste.load(model, request.getfixturevalue(tokenizer))
        e = piste.explain(classifier, TEXT, method=name, target=0, held_out=0)
        scores.append(e.score())
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5 * np.abs(scores[0]).max())


@pytest.mark.parametrize("name", ATTENTION)
def test_half_precision(name: str, wordpiece: Any) -> None:
    exact, half = (
        piste.explain(
            piste.load(build("bert", **FAMILIES["bert"][1]).to(kind), wordpiece),
            TEXT,
            method=name,
            held_out=0,
        ).score()
        for kind in (torch.float32, torch.bfloat16)
    )
    assert np.corrcoef(exact, half)[0, 1] > 0.9


@pytest.mark.parametrize("name", ATTENTION)
def test_the_users_model_stays_as_it_was(name: str, wordpiece: Any) -> None:
    model = build("bert", **FAMILIES["bert"][1]).train()
    before = state(model)
    classifier = piste.load(model, wordpiece)
    piste.explain(classifier, TEXT, method=name)
    assert state(model) == before

    def fails(logits: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        piste.explain(classifier, TEXT, method=name, target=fails)
    assert state(model) == before


@pytest.mark.parametrize("name", ATTENTION)
def test_models_without_attention_are_refused(name: str, wordpiece: Any) -> None:
    classifier = piste.load(build("fnet", **FAMILIES["fnet"][1]), wordpiece)
    with pytest.raises(PisteError, match="No attention between the tokens"):
        piste.explain(classifier, TEXT, method=name)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("attention", {"layers": "first"}, "layers: expected one of mean, last, got 'first'"),
        ("attention", {"queries": "cls"}, "expected one of all, reader"),
        ("attention_norms", {"layers": 1}, "expected one of mean, last"),
        ("attention_flow", {"most_tokens": 0}, "most_tokens: expected .*, got 0"),
        ("grad_sam", {"received": "yes"}, "True or False"),
        ("attention_shapley", {"game": "poker"}, "expected one of cls, mutual, max_mutual"),
        ("attention_shapley", {"gradient": "abs"}, "expected one of none, relu, signed"),
        ("attention_shapley", {"matrix": "flow"}, "expected one of mean, rollout"),
        ("attention_shapley", {"present": 1}, "True, False or None"),
        ("attention_shapley", {"game": "cls", "present": True}, "changes nothing"),
        ("attention_rollout", {"held_out": -1}, "held_out: expected .*, got -1"),
    ],
)
def test_options_are_checked(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PisteError, match=words):
        make(name, options)


def test_none_is_a_word_on_the_command_line() -> None:
    assert make("attention_shapley", {"gradient": None}) == make(
        "attention_shapley", {"gradient": "none"}
    )


def test_pairs_of_texts(bert: Any) -> None:
    target = Target("class", "first", (0,))
    pair = ("A slow start", "a wonderful ending")
    e = piste.explain(bert, pair, method="attention_shapley", target=0)
    found = trace(bert.gradient_access(bert.subject(pair), target))
    assert found.units == len(e) == 6
    assert (found.token_units < 0).sum() == 3  # [CLS] and two [SEP]


# -- images --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["vit", "deit", "dinov2-registers", "siglip", "beit"])
@pytest.mark.parametrize("name", ATTENTION)
def test_patches_are_units(name: str, family: str) -> None:
    classifier = images.loaded(family)
    e = piste.explain(classifier, images.photo(), method=name, units="patches", held_out=0)
    assert len(e) == 16
    assert e.calls == 2
    found = trace(classifier.gradient_access(classifier.subject(images.photo()), e.target))
    model = images.build(family, attn_implementation="eager")
    values = classifier.processor(images=Image.fromarray(images.photo()), return_tensors="pt")
    with torch.no_grad():
        own = model(**values, output_attentions=True).attentions
    for layer, weights in zip(found.layers, own, strict=True):
        np.testing.assert_allclose(layer.weights, weights[0], atol=1e-5)
    if name == "attention":
        received = torch.stack(own).mean(dim=(0, 1, 2, 3))[-16:]
        np.testing.assert_allclose(e.score(), received, atol=1e-6)
    if name != "attention_shapley":  # blocks of patches sum up what their patches have
        coarse = piste.explain(classifier, images.photo(), method=name, units="grid:2", held_out=0)
        fine = e.score().reshape(2, 2, 2, 2).sum(axis=(1, 3)).ravel()
        np.testing.assert_allclose(coarse.score(), fine, atol=1e-6)


@pytest.mark.parametrize("family", ["swin", "resnet"])
def test_images_without_attention_between_patches_are_refused(family: str) -> None:
    with pytest.raises(PisteError, match="choose a method that does not look at attention"):
        piste.explain(images.loaded(family), images.photo(), method="attention", units="grid:2")
