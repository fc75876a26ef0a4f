from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.policies import lm, models
from stretto.policies.lm import LanguageModel, render

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
WORDS = ("stop", "one", "two", "three")
CANDIDATES = (WORDS, ("one", "one two", "one three", "stop"), ("stop",), ("xyz", "xyw", "x", ""))
PROMPTS = ("go", *(f"the lead is {word} and red" for word in ("one", "two", "six", "none")))
PAIRS = [(prompt, candidates) for prompt in PROMPTS for candidates in CANDIDATES]
some_pairs = st.lists(st.sampled_from(PAIRS), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def raw(tiny_folder):
    """Model and tokenizer, as transformers loads them."""
    return models.load(tiny_folder, "float32")


@pytest.fixture
def policy(raw):
    return LanguageModel(*raw)


def next_logprobs(raw, ids):
    """Plain forward over one sequence; log-probabilities of the next token."""
    with torch.no_grad():
        logits = raw[0](input_ids=torch.tensor([ids])).logits[0, -1]
    return torch.log_softmax(logits.double(), dim=0).numpy()


def enumerated(raw, prompt, candidates):
    """Score each candidate token by token, renormalised over the tokens that are legal there."""
    tokenizer = raw[1]
    start = tokenizer.encode(prompt)
    ended = [(*tokenizer.encode(each), tokenizer.eos_token_id) for each in candidates]
    result = []
    for ids in ended:
        total = 0.0
        for depth, token in enumerate(ids):
            legal = sorted({other[depth] for other in ended if other[:depth] == ids[:depth]})
            logprobs = next_logprobs(raw, [*start, *ids[:depth]])
            total += logprobs[token] - np.log(np.exp(logprobs[legal]).sum())
        result.append(total)
    return np.array(result)


def padded_gradients(raw, prompts, first_tokens, weights):
    """Gradient of the weighted log-probabilities of one-token choices, by a padded batch."""
    model, tokenizer = raw
    model.zero_grad()
    ids = [tokenizer.encode(prompt) for prompt in prompts]
    width = max(map(len, ids))
    batch = torch.tensor([row + [0] * (width - len(row)) for row in ids])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids])
    last = torch.tensor([len(row) - 1 for row in ids])
    logits = model(input_ids=batch, attention_mask=mask).logits[torch.arange(len(ids)), last]
    (torch.log_softmax(logits[:, first_tokens].double(), dim=1) * weights).sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_one_token_choices_are_a_softmax_over_their_logits(policy, raw):
    model, tokenizer = raw
    tokens = [tokenizer.encode(word)[0] for word in WORDS]
    assert all(tokenizer.encode(word) == [token] for word, token in zip(WORDS, tokens, strict=True))
    logits = model(input_ids=torch.tensor([tokenizer.encode("go")])).logits[0, -1, tokens]
    scores = np.exp(logits.detach().double().numpy())
    (found,) = policy.distributions([("go", WORDS)])
    np.testing.assert_allclose(np.exp(found.logprobs), scores / scores.sum(), rtol=1e-5)
    assert found.prompt_ids == tuple(tokenizer.encode("go"))
    assert found.trie.ids == tuple((token,) for token in tokens)


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_probabilities_equal_enumeration_and_sum_to_one(policy, raw, candidates):
    (found,) = policy.distributions([(PROMPTS[0], candidates)])
    expected = enumerated(raw, PROMPTS[0], candidates)
    np.testing.assert_allclose(found.logprobs, expected, rtol=1e-4, atol=1e-5)
    assert np.exp(found.logprobs).sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(some_pairs, st.integers(1, 60), st.randoms())
def test_order_duplicates_and_company_change_nothing(raw, pairs, budget, random):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lm, "BUDGET", budget)
        once = LanguageModel(*raw).distributions(pairs)
        mixed = pairs * 2
        random.shuffle(mixed)
        again = dict(zip(mixed, LanguageModel(*raw).distributions(mixed), strict=True))
    for pair, found in zip(pairs, once, strict=True):
        np.testing.assert_array_equal(found.logprobs, again[pair].logprobs)
        (alone,) = LanguageModel(*raw).distributions([pair])
        np.testing.assert_allclose(found.logprobs, alone.logprobs, rtol=1e-4, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(some_pairs)
def test_token_logprobs_sum_to_those_of_the_candidates(raw, pairs):
    for found in LanguageModel(*raw).distributions(pairs):
        for index, ids in enumerate(found.trie.ids):
            tokens = found.token_logprobs(index)
            assert len(tokens) == len(ids)
            assert sum(tokens) == pytest.approx(found.logprobs[index])


def test_gradients_equal_those_of_a_padded_batch(policy, raw, monkeypatch):
    model, tokenizer = raw
    tokens = [tokenizer.encode(word)[0] for word in WORDS]
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(len(PROMPTS), len(WORDS), generator=generator, dtype=torch.float64)
    expected = padded_gradients(raw, PROMPTS, tokens, weights)
    for budget in (lm.BUDGET, 10):
        monkeypatch.setattr(lm, "BUDGET", budget)
        model.zero_grad()
        tensors = policy.differentiable([(prompt, WORDS) for prompt in PROMPTS])
        (torch.stack(tensors) * weights).sum().backward()
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            error = (parameter.grad - gradient).norm() / gradient.norm()
            assert error < 1e-5


def test_gradients_flow_through_every_decision_of_a_long_candidate(policy, raw):
    pair = ("go", ("one two", "one three", "one", "stop"))
    (tensor,) = policy.differentiable([pair])
    (found,) = policy.distributions([pair])
    np.testing.assert_allclose(tensor.detach().numpy(), found.logprobs, rtol=1e-5)
    raw[0].zero_grad()
    (tensor.exp().sum()).backward()  # constant 1, so its gradient vanishes
    assert all(p.grad.abs().max() < 1e-5 for p in raw[0].parameters())


def test_each_distinct_prefix_is_read_once_a_version(policy, raw):
    pairs = [(prompt, WORDS) for prompt in PROMPTS]
    policy.distributions(pairs * 3)
    prefixes = {
        tuple(ids[:depth])
        for ids in (raw[1].encode(prompt) for prompt in PROMPTS)
        for depth in range(1, len(ids) + 1)
    }
    assert policy.tokens_generated == len(prefixes)
    policy.distributions(pairs)
    assert policy.tokens_generated == len(prefixes)
    policy.updated()
    policy.distributions(pairs)
    assert policy.tokens_generated == 2 * len(prefixes)
    policy.differentiable(pairs * 2)
    assert policy.tokens_trained == len(prefixes)


def test_a_single_candidate_costs_nothing(policy):
    (found,) = policy.distributions([("go", ("stop",))])
    assert found.logprobs.tolist() == [0.0]
    assert policy.tokens_generated == 0


def test_a_step_up_the_gradient_makes_a_choice_likelier(tiny_folder):
    policy = LanguageModel(*models.load(tiny_folder, "float32"))
    optimiser = torch.optim.AdamW(policy.parameters(), lr=1e-2, weight_decay=0.0)
    values = []
    for _ in range(6):
        values.append(policy.distributions([("go", WORDS)])[0].logprobs[2])
        (-policy.differentiable([("go", WORDS)])[0][2]).backward()
        optimiser.step()
        optimiser.zero_grad()
        policy.updated()
    assert all(later > earlier for earlier, later in pairwise(values))


def test_products_by_onednn_change_rounding_only(raw, tiny_folder):
    pairs = [(prompt, WORDS) for prompt in PROMPTS]
    results = []
    for policy in (LanguageModel(*raw), LanguageModel.open(str(tiny_folder))):
        for parameter in policy.parameters():
            parameter.grad = None
        values = torch.stack(policy.differentiable(pairs))
        (values[:, 0] * torch.arange(len(pairs))).sum().backward()
        gradients = [parameter.grad.clone() for parameter in policy.parameters()]
        results.append((values.detach(), gradients, policy.distributions(pairs)))
    (plain, gradients, found), (fast, other_gradients, other_found) = results
    np.testing.assert_allclose(plain, fast, rtol=1e-4, atol=1e-5)
    for one, other in zip(gradients, other_gradients, strict=True):
        assert (one - other).norm() / one.norm() < 1e-5
    for one, other in zip(found, other_found, strict=True):
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=1e-4, atol=1e-5)


def test_who_forgot_answers_as_if_just_opened(raw):
    pairs = [(prompt, WORDS) for prompt in PROMPTS]
    policy = LanguageModel(*raw)
    policy.distributions(pairs[:1])
    read = policy.tokens_generated
    policy.forget()
    found = policy.distributions(pairs)
    assert policy.tokens_generated > 2 * read
    for one, other in zip(found, LanguageModel(*raw).distributions(pairs), strict=True):
        np.testing.assert_array_equal(one.logprobs, other.logprobs)


def test_state_and_folder_bring_the_same_policy_back(tiny_folder, tmp_path):
    pairs = [(prompt, WORDS) for prompt in PROMPTS]
    policy = LanguageModel.open(str(tiny_folder))
    before = policy.distributions(pairs)
    state = {name: tensor.clone() for name, tensor in policy.state().items()}
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(1.1)
    policy.updated()
    changed = policy.distributions(pairs)
    policy.save(tmp_path / "weights")
    policy.save(tmp_path / "weights")  # over itself
    opened = LanguageModel.open(str(tmp_path / "weights")).distributions(pairs)
    policy.restore(state)
    for old, new, other, saved in zip(
        before, policy.distributions(pairs), changed, opened, strict=True
    ):
        np.testing.assert_array_equal(old.logprobs, new.logprobs)
        np.testing.assert_array_equal(other.logprobs, saved.logprobs)
        assert not np.allclose(old.logprobs, other.logprobs)
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]


def test_16_bit_arithmetic_stays_close_and_trains_32_bit_weights(raw, monkeypatch):
    exact = LanguageModel(*raw)
    monkeypatch.setattr(lm, "_has_bf16_units", lambda: True)
    rough = LanguageModel(*raw)
    assert (exact.dtype_name, rough.dtype_name) == ("float32", "bfloat16")
    pairs = [(prompt, WORDS) for prompt in PROMPTS]
    for one, other in zip(exact.distributions(pairs), rough.distributions(pairs), strict=True):
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=0.3)
    torch.stack(rough.differentiable(pairs)).sum().backward()
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in rough.parameters())


def test_prompts_follow_the_chat_template(raw):
    tokenizer = raw[1]
    assert render(tokenizer, "Lead.", "go") == "Lead.\ngo\n"
    assert render(tokenizer, "", "go") == "go\n"
    try:
        tokenizer.chat_template = TEMPLATE
        assert render(tokenizer, "Lead.", "go") == "<system>Lead.\n<user>go\n<assistant>"
        assert render(tokenizer, "", "go") == "<user>go\n<assistant>"
    finally:
        tokenizer.chat_template = None


@pytest.mark.parametrize("prompt", ["", "go " * 200])
def test_a_prompt_must_fit_the_model(policy, prompt):
    with pytest.raises(StrettoError, match=r"prompt: \d+ tokens; the model reads 1 to 128"):
        policy.distributions([(prompt, WORDS)])


def test_a_model_with_a_sliding_window_is_refused(raw):
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1, "head_dim": 8}
    config = Gemma3TextConfig(
        vocab_size=16, num_hidden_layers=2, num_key_value_heads=1, pad_token_id=0, **sizes
    )
    with pytest.raises(StrettoError, match="sliding_attention cannot read prompts as a tree"):
        LanguageModel(Gemma3ForCausalLM(config), raw[1])
