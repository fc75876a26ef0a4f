"""A model behind an OpenAI-compatible endpoint, as a policy: it picks among the legal choices.

The harness contract is the same for everybody: the system prompt of the task, what the agent sees,
the numbered choices, and the request to answer with the number of one. Needs `stretto[endpoint]`.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from stretto.errors import StrettoError
from stretto.policies.chat_reply import Reply, decoded, text_of, tokens_of
from stretto.team.noise import key_of
from stretto.team.protocols import Answer, Ask
from stretto.trace import Tokens, content_hash

if TYPE_CHECKING:
    import httpx2

AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)
"""Answers after which the same request may succeed."""
ASK = "Answer with the number of your choice and nothing else."
HINT = "check the address, the name of the model, and the key in OPENAI_API_KEY"
EXAMPLE = "as in http://localhost:8000/v1"
MOST_PORT = 65_535
PROBE = Ask("probe", "", "Choose any.", ("yes", "no"), "probe", 0)
DAY = 86_400
Seconds = Annotated[float, Meta(gt=0, le=DAY)]
Count = Annotated[int, Meta(ge=1)]
Retries = Annotated[int, Meta(ge=0, le=20)]
ANSWER_TOKENS = 1024
"""Room for a model that thinks before it answers; who answers at once does not need it."""


class InvalidAnswerError(StrettoError):
    """The model answered, but chose nothing that is legal: its own mistake, not a failed call."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """How a model is reached."""

    url: str
    """Base address, as in `http://localhost:8000/v1`."""
    model: str
    key: str | None = None
    """Bearer token; the variable `OPENAI_API_KEY` where absent."""
    timeout: Seconds = 60.0
    """Seconds until a call counts as failed, from the first byte sent to the last one received."""
    retries: Retries = 4
    """How often a call that failed is made again."""
    backoff: Annotated[float, Meta(ge=0, le=DAY)] = 0.5
    """Seconds before the first new call; they double each time."""
    concurrency: Count = 8
    """Calls at once."""
    answer_tokens: Count = ANSWER_TOKENS
    """Most tokens of an answer, thoughts included."""
    temperature: float = 0.0


class EndpointPolicy:
    """Asks an endpoint for every choice."""

    def __init__(self, endpoint: Endpoint, sleep: Callable[[float], None] = time.sleep) -> None:
        """Open a client; nothing is sent yet.

        Raises `StrettoError` where `httpx2` is not installed, and for an address, a key or a
        number that cannot be used.
        """
        try:
            import httpx2
        except ImportError:
            hint = "pip install 'stretto[endpoint]'"
            raise StrettoError("calling a model needs httpx2", "endpoint", hint) from None
        self._endpoint = endpoint
        self._address = _address(endpoint)
        self._sleep = sleep
        limits = httpx2.Limits(max_connections=None)  # time in a queue would count as theirs
        self._client = httpx2.AsyncClient(timeout=None, headers=_headers(endpoint), limits=limits)
        self._pool = ThreadPoolExecutor(endpoint.concurrency)
        # A client without a loop has limits for single reads only: a byte a second is never late.
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def about(self) -> dict[str, Any]:
        """Kind, model, temperature, length of answers, digest of the address; no key."""
        own = self._endpoint
        return {
            "kind": "endpoint",
            "model": own.model,
            "temperature": own.temperature,
            "answer_tokens": own.answer_tokens,
            "address": content_hash(own.url)[:12],
        }

    def probe(self) -> None:
        """Make one small call, once.

        Raises `StrettoError` with the address where no answer comes that could be read.
        """
        try:
            _said(self._call(_request(self._endpoint, PROBE), retries=0), self._endpoint)
        except StrettoError as error:
            where = str(self._address.copy_with(userinfo=b"", query=None))
            raise StrettoError(error.what, where, error.hint or HINT) from None

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """Ask for every choice, several at once.

        Raises `StrettoError` for a call that failed for good, and `InvalidAnswerError` for an
        answer that is no choice. An answer that was cut for its length before it named a choice is
        a failed call: the limit is the examiner's, and nobody knows what would have come.
        """
        if len(asks) == 1:
            return [self._answer(asks[0])]
        return list(self._pool.map(self._answer, asks))

    def close(self) -> None:
        """Give connections and threads back; calls under way are given up."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _hang_up(self) -> None:
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._client.aclose()

    def _answer(self, ask: Ask) -> Answer:
        own = self._endpoint
        if len(ask.candidates) == 1:  # nothing to choose, nothing to pay for
            return Answer(0, own.model, tokens=Tokens(input=0, output=0))
        reply = self._call(_request(own, ask), own.retries)
        said = _said(reply, own)
        try:
            chosen = chosen_by(said, ask)
        except InvalidAnswerError:
            if reply.cut:
                raise _cut(own) from None
            raise
        return Answer(chosen, reply.model or own.model, tokens=tokens_of(reply))

    def _call(self, request: Mapping[str, Any], retries: int) -> Reply:
        """The reply to a request; a call that may succeed later is made again."""
        import httpx2

        reason = ""
        for attempt in range(retries + 1):
            if attempt:
                self._sleep(self._endpoint.backoff * 2 ** (attempt - 1))
            try:
                reply = asyncio.run_coroutine_threadsafe(self._post(request), self._loop).result()
            except TimeoutError:
                reason = f"no whole answer within {self._endpoint.timeout:g} s"
                continue
            except httpx2.TransportError as error:
                reason = f"{type(error).__name__} {error}".strip()
                continue
            except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
                raise _failed(str(error)) from None
            if reply.status_code == 200:
                return decoded(reply.content)
            reason = f"status {reply.status_code}: {reply.text[:200]}"
            if reply.status_code not in AGAIN:
                raise _failed(reason)
        raise _failed(f"{reason}, after {retries + 1} calls" if retries else reason)

    async def _post(self, request: Mapping[str, Any]) -> "httpx2.Response":
        async with asyncio.timeout(self._endpoint.timeout):
            return await self._client.post(self._address, json=request)


def chosen_by(text: str, ask: Ask) -> int:
    """Index of the choice that an answer names: by its number, else by its exact words.

    Raises `InvalidAnswerError` where it names none.
    """
    said = text.strip().strip("\"'`.").strip()
    number = re.match(r"\(?(\d{1,9})(?=\D|$)", said)
    if number and 1 <= int(number[1]) <= len(ask.candidates):
        return int(number[1]) - 1
    if said in ask.candidates:
        return ask.candidates.index(said)
    what = f"the model answered {text[:80]!r}, which is none of {len(ask.candidates)} choices"
    raise InvalidAnswerError(what, ask.event)


def prompt_of(ask: Ask) -> str:
    """What the model reads, beside the system prompt."""
    lines = [f"{number}. {choice}" for number, choice in enumerate(ask.candidates, start=1)]
    return "\n".join([ask.prompt, "", *lines, "", ASK])


def _request(endpoint: Endpoint, ask: Ask) -> dict[str, Any]:
    system = [{"role": "system", "content": ask.system}] if ask.system else []
    return {
        "model": endpoint.model,
        "messages": [*system, {"role": "user", "content": prompt_of(ask)}],
        "temperature": endpoint.temperature,
        "max_tokens": endpoint.answer_tokens,
        "seed": key_of(0, str(ask.key)) % 2**31,
    }


def _address(endpoint: Endpoint) -> "httpx2.URL":
    """Where calls go; the one place in which an endpoint is checked before it is called."""
    import httpx2

    try:
        msgspec.convert(msgspec.structs.asdict(endpoint), Endpoint)
        url = endpoint.url.rstrip("/").removesuffix("/chat/completions")
        address = httpx2.URL(f"{url}/chat/completions")
    except (msgspec.ValidationError, httpx2.InvalidURL) as error:
        raise StrettoError(str(error), f"the endpoint {endpoint.url!r}", EXAMPLE) from None
    known = address.scheme in ("http", "https") and address.host
    if not known or (address.port or 0) > MOST_PORT:
        raise StrettoError("is no address of an endpoint", repr(endpoint.url), EXAMPLE)
    return address


def _headers(endpoint: Endpoint) -> dict[str, str]:
    key = endpoint.key or os.environ.get("OPENAI_API_KEY")
    if key and not (key.isascii() and key.isprintable()):
        hint = "a key is one line of letters, digits and signs"
        raise StrettoError("cannot be sent", "the key of the endpoint", hint)
    return {"Authorization": f"Bearer {key}"} if key else {}


def _said(reply: Reply, endpoint: Endpoint) -> str:
    text = text_of(reply)
    if not text and reply.cut:
        raise _cut(endpoint)
    if text is None:
        raise _failed("its answer holds no text")
    return text


def _cut(endpoint: Endpoint) -> StrettoError:
    what = f"cut after {endpoint.answer_tokens} tokens, before the answer named a choice"
    return StrettoError(what, hint="allow more with --answer-tokens")


def _failed(reason: str) -> StrettoError:
    """A call that failed; without address or event, so that equal reasons read alike."""
    return StrettoError(f"the endpoint failed: {reason}", hint=HINT)
