"""A tiny model with its own tokenizer, made on the spot."""

from pathlib import Path
from typing import Any

CORPUS = ["stop", "one", "two", "three", "the lead is one", "red blue two three stop"]


def tiny_tokenizer(vocabulary: int = 330) -> Any:
    """A byte-level tokenizer, so that it writes any text; common words are one token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<end>"],
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def tiny_model(vocabulary: int, seed: int = 0) -> Any:
    """A random Llama of two layers whose choices are far from uniform."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.2,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )
    config._attn_implementation = "sdpa"
    return LlamaForCausalLM(config)


def make_tiny(folder: Path) -> Path:
    """Write the tiny model and its tokenizer as a folder that `resolve` accepts."""
    from stretto.policies import models

    tokenizer = tiny_tokenizer()
    models.save(tiny_model(len(tokenizer)), tokenizer, folder)
    return folder
