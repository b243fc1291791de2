import numpy as np
import pytest
import torch

from domain.sample import SamplingParams
from tests.engine.backend import backend_of
from tests.engine.exactness import DTYPES

pytestmark = pytest.mark.usefixtures("kernels")

LOGITS = [2.0, 1.0, 0.0, -1.0]
RAW = [-0.440190, -1.440190, -2.440190, -3.440190]


def tokens_over_uniforms(logits: list[float], count: int = 2000, **params: float) -> list[int]:
    """The tokens drawn at evenly spread uniforms: their shares are the probabilities."""
    uniforms = ((np.arange(count) + 0.5) / count).tolist()
    logits_BV = torch.tensor([logits]).expand(count, -1)
    return backend_of().draw(logits_BV, [SamplingParams(**params)] * count, uniforms)[0].tolist()  # type: ignore[arg-type]


def shares(tokens: list[int], vocabulary: int = 4) -> list[float]:
    return (np.bincount(tokens, minlength=vocabulary) / len(tokens)).tolist()


def softmax(values: list[float]) -> np.ndarray:
    exponentials = np.exp(np.array(values) - max(values))
    return exponentials / exponentials.sum()


@pytest.mark.parametrize(
    "params",
    [
        {"top_k": 2},
        {"temperature": 0.0},
        {"temperature": 1e-4},
        {"temperature": 1e-45},
        {"top_p": 0.1},
        {"temperature": 0.5},
    ],
)
def test_a_logprob_is_raw_and_over_the_full_vocabulary_whatever_chose_the_token(params: dict[str, float]) -> None:
    tokens, logprobs = backend_of().draw(torch.tensor([LOGITS]), [SamplingParams(**params)], [0.1])  # type: ignore[arg-type]
    assert tokens.item() == 0
    assert logprobs.item() == pytest.approx(RAW[0], abs=1e-6)


def test_drawn_tokens_follow_the_softmax() -> None:
    assert shares(tokens_over_uniforms(LOGITS)) == pytest.approx(softmax(LOGITS).tolist(), abs=1e-3)


def test_temperature_divides_the_logits() -> None:
    tokens = tokens_over_uniforms(LOGITS, temperature=2.0)
    assert shares(tokens) == pytest.approx(softmax([1.0, 0.5, 0.0, -0.5]).tolist(), abs=1e-3)


@pytest.mark.parametrize("off", [-1, 0, 4, 5])
def test_these_top_k_are_off(off: int) -> None:
    assert tokens_over_uniforms(LOGITS, top_k=off) == tokens_over_uniforms(LOGITS)


def test_top_k_keeps_the_k_best() -> None:
    assert shares(tokens_over_uniforms(LOGITS, top_k=2)) == pytest.approx([*softmax([2.0, 1.0]), 0, 0], abs=1e-3)
    assert set(tokens_over_uniforms(LOGITS, top_k=1)) == {0}


@pytest.mark.parametrize(
    ("top_p", "kept"), [(1.2e-38, 1), (0.05, 1), (0.64, 1), (0.65, 2), (0.88, 2), (0.89, 3), (0.97, 4)]
)
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p: float, kept: int) -> None:
    # Cumulated: 0.6439, 0.8808, 0.9679, 1.
    assert len(set(tokens_over_uniforms(LOGITS, top_p=top_p))) == kept


def test_top_p_comes_after_temperature_and_top_k() -> None:
    # Of the two best at temperature 2 the first has 0.6225 of the mass.
    assert set(tokens_over_uniforms(LOGITS, temperature=2.0, top_k=2, top_p=0.62)) == {0}
    assert set(tokens_over_uniforms(LOGITS, temperature=2.0, top_k=2, top_p=0.63)) == {0, 1}


@pytest.mark.parametrize("params", [{"temperature": 0.0}, {"top_k": 1}])
def test_of_equal_logits_the_lowest_id_is_best(params: dict[str, float]) -> None:
    assert set(tokens_over_uniforms([0.0, 3.0, 3.0, 3.0], count=50, **params)) == {1}


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("params", [{}, {"top_p": 0.999999}])
def test_a_token_without_probability_is_never_drawn(uniform: float, params: dict[str, float]) -> None:
    logits = torch.full((1, 1000), -float("inf"))
    logits[0, 300:310] = 0.0
    token = backend_of().draw(logits, [SamplingParams(**params)], [uniform])[0].item()  # type: ignore[arg-type]
    assert 300 <= token < 310


def test_small_tokens_of_a_large_vocabulary_get_their_share() -> None:
    # One token of 0.9 and 100,000 that share 0.1: the upper tenth of the uniforms spreads evenly over them.
    logits = torch.zeros(1, 100_001)
    logits[0, 0] = np.log(0.9 / 0.1 * 100_000)
    uniforms = [0.9 + 0.1 * (k + 0.5) / 100_000 for k in (0, 50_000, 99_999)]
    tokens, _ = backend_of().draw(logits.expand(3, -1), [SamplingParams()] * 3, uniforms)
    assert np.abs(np.array(tokens.tolist()) - [1, 50_001, 100_000]).max() <= 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("vocabulary", [1, 3, 16, 255, 257, 1000, 49_153])
@pytest.mark.parametrize("temperature", [1.0, 0.6, 3.0])
def test_a_token_is_where_float64_finds_its_uniform(vocabulary: int, temperature: float, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    logits_V = (torch.randn(vocabulary, generator=generator) * 3).to(dtype)
    uniforms = [0.0, 1e-9, *((np.arange(60) + 0.5) / 60), 1 - 1e-9, 1 - 2**-53]
    params = [SamplingParams(temperature=temperature)] * len(uniforms)
    tokens, _ = backend_of().draw(logits_V.expand(len(uniforms), -1), params, uniforms)
    edges = np.cumsum((logits_V.double() / temperature).softmax(0).numpy())
    below = np.concatenate([[0.0], edges])[tokens]
    assert (below - 2e-6 <= uniforms).all() and (uniforms <= edges[tokens] + 2e-6).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", [1.3, 0.05, 20.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(-1, 0.9), (-1, 0.2), (700, 0.95), (64, 1.0), (65, 1.0), (4000, 0.999)])
def test_a_token_is_where_float64_finds_its_uniform_among_the_best(
    top_k: int, top_p: float, temperature: float, dtype: torch.dtype
) -> None:
    logits_V = (torch.randn(5000, generator=torch.Generator().manual_seed(0)) * 3).to(dtype)
    uniforms = [0.0, *((np.arange(60) + 0.5) / 60), 1 - 2**-53]
    params = [SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p)] * len(uniforms)
    tokens, _ = backend_of().draw(logits_V.expand(len(uniforms), -1), params, uniforms)
    order = sorted(range(5000), key=lambda token: (-logits_V[token].item(), token))[: top_k if top_k > 0 else None]
    masses = np.exp((logits_V.double().numpy()[order] - logits_V.max().item()) / temperature)
    edges = np.cumsum(masses) / masses.sum()
    # The first place where the share is reached is the last that is kept.
    edges = edges[: np.searchsorted(edges, min(top_p, edges[-1])) + 1]
    places = np.array([order.index(token) for token in tokens.tolist()])
    below = np.concatenate([[0.0], edges])[places]
    marks = np.array(uniforms) * edges[-1]
    assert (below - 2e-6 <= marks).all() and (marks <= edges[places] + 2e-6).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_bits_alone_and_in_a_batch_and_those_of_the_trainer(
    kernels: str, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits_BV = (torch.randn(33, 10_007, generator=generator) * 4).to(dtype)
    kinds = [
        SamplingParams(),
        SamplingParams(temperature=0.7),
        SamplingParams(temperature=0),
        SamplingParams(top_p=0.9),
    ]
    params, uniforms = [kinds[row % 4] for row in range(33)], torch.rand(33, generator=generator).tolist()
    tokens_B, logprobs_B = backend_of().draw(logits_BV, params, uniforms)
    for row in (0, 1, 2, 3, 32):
        token, logprob = backend_of().draw(logits_BV[row : row + 1], [params[row]], [uniforms[row]])
        assert (token, logprob) == (tokens_B[row], logprobs_B[row])
    off = 0 if kernels == "native" else 1e-5
    torch.testing.assert_close(logprobs_B, backend_of().target_logprobs(logits_BV, tokens_B)[0], rtol=0, atol=off)


def test_rows_do_not_depend_on_their_neighbours() -> None:
    logits_BV = torch.randn(4, 500, generator=torch.Generator().manual_seed(0))
    params = [SamplingParams(), SamplingParams(top_k=5), SamplingParams(temperature=0), SamplingParams(top_p=0.3)]
    uniforms = [0.2, 0.9, 0.5, 0.7]
    together = backend_of().draw(logits_BV, params, uniforms)
    for row in range(4):
        alone = backend_of().draw(logits_BV[row : row + 1], [params[row]], [uniforms[row]])
        assert alone[0].item() == together[0][row].item()
        assert alone[1].item() == pytest.approx(together[1][row].item(), abs=1e-6)


def test_a_row_that_is_not_finite_shows_in_its_own_logprob_only() -> None:
    logits_BV = torch.tensor([LOGITS, [float("nan")] * 4, [float("inf"), 0, 0, 0]])
    for params in (SamplingParams(), SamplingParams(temperature=0), SamplingParams(top_k=2)):
        tokens, logprobs = backend_of().draw(logits_BV, [params] * 3, [0.1] * 3)
        assert np.isfinite(logprobs.tolist()).tolist() == [True, False, False]
        assert all(0 <= token < 4 for token in tokens.tolist())
