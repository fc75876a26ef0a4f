"""What an OpenAI-compatible endpoint answers: as much of it as is read here, checked."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from stretto.errors import StrettoError
from stretto.trace import Tokens

Count = Annotated[int, Meta(ge=0, le=10**12)]


class Part(Struct, frozen=True):
    """A part of a message."""

    type: str = ""
    text: str | None = None
    """What it says, where it is of the type `text`."""


class Message(Struct, frozen=True):
    """What the model said."""

    content: str | list[Part] | None = None


class Choice(Struct, frozen=True):
    """One answer."""

    message: Message
    finish_reason: str | None = None
    """`length` where it was cut."""


class Details(Struct, frozen=True):
    """More about tokens."""

    cached_tokens: Count | None = None


class Usage(Struct, frozen=True):
    """What the call took, in tokens."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: Details | None = None


class Reply(Struct, frozen=True):
    """A whole reply; fields that are not read may hold anything."""

    choices: Annotated[list[Choice], Meta(min_length=1)]
    model: str | None = None
    usage: Usage | None = None

    @property
    def cut(self) -> bool:
        """Whether the answer ended because it was too long."""
        return self.choices[0].finish_reason == "length"


def decoded(data: bytes) -> Reply:
    """Read a reply.

    Raises `StrettoError` for what is none.
    """
    try:
        return msgspec.json.decode(data, type=Reply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = data[:80].decode("utf-8", "replace")
        raise StrettoError(f"the endpoint answered no reply but {said!r}: {error}") from None


def text_of(reply: Reply) -> str | None:
    """What the model said, of several parts the texts; `None` where it said nothing at all."""
    content = reply.choices[0].message.content
    if content is None or isinstance(content, str):
        return content
    texts = [part.text for part in content if part.type == "text" and part.text is not None]
    return "".join(texts) if texts else None


def tokens_of(reply: Reply) -> Tokens | None:
    """What the endpoint says that the call took; `None` where it does not say.

    Raises `StrettoError` for numbers that contradict each other.
    """
    usage = reply.usage
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens if details else None) or 0
    read = usage.prompt_tokens - cached
    if read < 0:
        raise StrettoError("the endpoint counts more cached tokens than tokens")
    return Tokens(input=read, output=usage.completion_tokens, cache_read=cached or None)
