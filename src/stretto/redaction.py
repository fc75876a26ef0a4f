"""Take texts and private strings out of a trace; what happened, when, and who caused what stays.

A private string becomes a placeholder as `<e-mail:1f0c9a22b4d7>`: the same string gets the same one
throughout, so who repeated what can still be seen. Placeholders and hashes depend on a random salt
that is kept nowhere. Without it, whoever guesses a text or an address could hash the guess and
compare; short texts (yes, a name, a price) are guessed in no time.
"""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from stretto import store
from stretto.errors import StrettoError, did_you_mean
from stretto.private_strings import RULES, Rule, replace_private, users_in, words_of
from stretto.trace import (
    DECISIONS,
    KINDS,
    LABELS,
    TOPOLOGIES,
    Agent,
    Decision,
    Edge,
    Event,
    SafetyLabel,
    Score,
    Tokens,
    Trace,
    content_hash,
)

Contents = Literal["keep", "hash", "drop"]
"""What happens to texts: `keep` replaces private strings in them, `hash` leaves a salted hash of
each, `drop` leaves nothing."""

PLAIN = {*KINDS, *LABELS, *DECISIONS, *TOPOLOGIES, "recorded", "derived", "heuristic"}
"""Words of the model, which are no texts wherever they stand."""
PLAIN_ATTRIBUTES = ("format", "started")
"""Header attributes that say how and when, not what: a word there is no text."""

IN_ANY_CASE = ("user", "e-mail")
"""Kinds of private strings that are the same in capitals."""

LEAST_SALT = 16
LONGEST_NAME = 200
"""Strings up to this length that hold nothing private are remembered as such."""


class Redaction(Struct, frozen=True):
    """What was taken out."""

    replaced: Mapping[str, Mapping[str, int]]
    """Private strings by kind and by the field they stood in."""
    distinct: Mapping[str, int]
    """Different private strings by kind."""
    texts: Mapping[str, int]
    """Texts, and strings in attributes, that were changed, hashed or dropped."""
    turns_without_ids: int
    """Turns whose token ids were taken out: they spell the text."""


def redact(
    trace: Trace, contents: Contents = "hash", salt: bytes | None = None
) -> tuple[Trace, Redaction]:
    """Take private strings, and texts unless they are to be kept, out of a trace.

    Events, edges, agents and scores stay, one for one and in order, with kinds, labels, times,
    tokens, prices and the numbers in attributes. Ids that hold a private string are renamed
    wherever they stand. A redacted trace can be measured, but no longer replayed.

    Args:
        trace: The trace.
        contents: What happens to texts. Where they are not kept, strings in attributes and in the
            spec, candidates of decisions and names of several words are texts too.
        salt: At least 16 secret bytes; fresh random ones where absent. The same salt gives the
            same placeholders: whoever has it can test guesses.
    """
    (redacted,), report = redact_all([trace], contents, salt)
    return redacted, report


def redact_all(
    traces: Iterable[Trace], contents: Contents = "hash", salt: bytes | None = None
) -> tuple[list[Trace], Redaction]:
    """Redact traces so that their placeholders agree; see `redact`.

    Raises `StrettoError` for an unknown way with texts, for a salt that is too short, and for
    attributes that JSON cannot hold.
    """
    if contents not in get_args(Contents):
        raise StrettoError(f'no way "{contents}"', hint=did_you_mean(contents, get_args(Contents)))
    if salt is not None and not LEAST_SALT <= len(salt) <= blake2b.MAX_KEY_SIZE:
        raise StrettoError(f"a salt has {LEAST_SALT} to {blake2b.MAX_KEY_SIZE} bytes")
    traces = list(traces)
    users = {name for trace in traces for name in _users(trace)}
    scrubber = Scrubber(salt or secrets.token_bytes(LEAST_SALT), words_of(users))
    tally = _Tally()
    redacted = [_Redactor(trace, contents, scrubber, tally).trace() for trace in traces]
    replaced = {kind: dict(fields) for kind, fields in scrubber.replaced.items()}
    distinct = {kind: len(strings) for kind, strings in scrubber.seen.items()}
    return redacted, Redaction(replaced, distinct, dict(tally.texts), tally.turns_without_ids)


def _users(trace: Trace) -> set[str]:
    """Users whose names stand in the paths of a trace: their names are replaced everywhere."""
    structure = store.encode(replace(trace, contents={})).decode()
    texts = (structure, *trace.contents, *trace.contents.values())
    return {name for text in texts for name in users_in(text)}


class Scrubber:
    """Puts placeholders in the place of private strings, and counts them."""

    def __init__(self, salt: bytes, users: tuple[Rule, ...] = ()) -> None:
        """`users` finds names that are replaced wherever they stand."""
        self.salt = salt
        self.rules = RULES + users
        self.replaced: dict[str, Counter[str]] = {}
        self.seen: dict[str, set[str]] = {}
        self.clean: set[str] = set()

    def scrub(self, text: str, field: str) -> str:
        """A text without private strings; `field` is where the report counts them."""
        if text in self.clean:  # ids and names come again and again
            return text

        def name(kind: str, string: str) -> str:
            string = string.lower() if kind in IN_ANY_CASE else string
            self.replaced.setdefault(kind, Counter())[field] += 1
            self.seen.setdefault(kind, set()).add(string)
            return f"<{kind}:{self.digest(kind, string, 6)}>"

        scrubbed = replace_private(text, name, self.rules)
        if scrubbed == text and len(text) <= LONGEST_NAME:
            self.clean.add(text)
        return scrubbed

    def digest(self, kind: str, text: str, size: int) -> str:
        """A hash that nobody can repeat without the salt, as `2 * size` hex digits."""
        data = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
        return blake2b(data, key=self.salt, digest_size=size).hexdigest()


class _Tally:
    """Counts over all traces."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self.turns_without_ids = 0


class _Redactor:
    """Rewrites one trace."""

    def __init__(
        self, source: Trace, contents: Contents, scrubber: Scrubber, tally: _Tally
    ) -> None:
        self.source = source
        self.contents: Contents = contents
        self.scrubber = scrubber
        self.tally = tally
        self.changed: set[str] = set()
        self.kept: dict[str, str] = {}
        self.references = self._references()

    def trace(self) -> Trace:
        """The trace without what is private."""
        source = self.source
        return Trace(
            **self._header(source),
            agents=tuple(map(self._agent, source.agents)),
            events=tuple(map(self._event, source.events)),
            edges=tuple(map(self._edge, source.edges)),
            scores=tuple(map(self._score, source.scores)),
            contents=self.kept,
        )

    def _references(self) -> dict[str, str | None]:
        """What becomes of every content reference; fills `kept` with the texts that stay."""
        source = self.source
        said = [name for event in source.events for name in _references_of(event)]
        return {name: self._reference(name) for name in dict.fromkeys([*source.contents, *said])}

    def _reference(self, name: str) -> str | None:
        text = self.source.contents.get(name)
        if self.contents != "keep":
            self.tally.texts[_DONE[self.contents]] += text is not None
            return self.scrubber.digest("text", name, 16) if self.contents == "hash" else None
        renamed = self.scrubber.scrub(name, "content")
        if text is None:
            return renamed
        scrubbed = self.scrubber.scrub(text, "contents")
        if scrubbed != text:
            self.changed.add(name)
            self.tally.texts["changed"] += 1
            renamed = content_hash(scrubbed) if name == content_hash(text) else renamed
        self.kept[renamed] = scrubbed
        return renamed

    def _new_reference(self, name: str | None) -> str | None:
        return None if name is None else self.references[name]

    def _header(self, trace: Trace) -> dict[str, Any]:
        lineage = (
            replace(
                fork,
                parent=self._name(fork.parent, "trace.lineage"),
                event=self._name(fork.event, "trace.lineage"),
            )
            for fork in trace.lineage
        )
        return {
            "id": self._name(trace.id, "trace.id"),
            "task": self._label(trace.task, "trace.task"),
            "system": _if_known(self._name, trace.system, "trace.system"),
            "topology": self._word(trace.topology, "trace.topology"),
            "harness": _if_known(self._name, trace.harness, "trace.harness"),
            "seed": trace.seed,
            "spec": self._value(trace.spec, "trace.spec"),
            "lineage": tuple(lineage),
            "attrs": self._header_attributes(trace.attrs),
        }

    def _header_attributes(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        words = {key: attrs[key] for key in PLAIN_ATTRIBUTES if isinstance(attrs.get(key), str)}
        rest = {key: value for key, value in attrs.items() if key not in words}
        plain = {key: self._label(word, "trace.attrs") for key, word in words.items()}
        return self._value(rest, "trace.attrs") | plain

    def _agent(self, agent: Agent) -> Agent:
        return Agent(
            id=self._name(agent.id, "agent.id"),
            role=_if_known(self._label, agent.role, "agent.role"),
            parent=_if_known(self._name, agent.parent, "agent.parent"),
            name=_if_known(self._label, agent.name, "agent.name"),
            model=_if_known(self._name, agent.model, "agent.model"),
            attrs=self._value(agent.attrs, "agent.attrs"),
        )

    def _event(self, event: Event) -> Event:
        return replace(
            event,
            id=self._name(event.id, "event.id"),
            kind=self._word(event.kind, "event.kind"),
            agent=self._name(event.agent, "event.agent"),
            to=_if_known(self._name, event.to, "event.to"),
            tool=_if_known(self._label, event.tool, "event.tool"),
            content=self._new_reference(event.content),
            decision=None if event.decision is None else self._decision(event, event.decision),
            tokens=None if event.tokens is None else self._tokens(event.tokens),
            label=None if event.label is None else self._safety(event.label),
            attrs=self._event_attrs(event),
        )

    def _event_attrs(self, event: Event) -> dict[str, Any]:
        attrs = self._value(event.attrs, "event.attrs")
        if event.model is None:
            return attrs
        return attrs | {"model": self._name(event.model, "event.attrs")}  # by which it is priced

    def _edge(self, edge: Edge) -> Edge:
        return Edge(
            src=self._name(edge.src, "edge"),
            dst=self._name(edge.dst, "edge"),
            label=self._word(edge.label, "edge.label"),
            evidence=edge.evidence,
        )

    def _tokens(self, tokens: Tokens) -> Tokens:
        if not tokens.unreliable:
            return tokens
        fields = tuple(self._word(field, "event.tokens") for field in tokens.unreliable)
        return replace(tokens, unreliable=fields)

    def _safety(self, label: SafetyLabel) -> SafetyLabel:
        return SafetyLabel(
            integrity=_if_known(self._label, label.integrity, "event.label"),
            confidentiality=_if_known(self._label, label.confidentiality, "event.label"),
        )

    def _decision(self, event: Event, decision: Decision) -> Decision:
        ids = (decision.prompt_ids, decision.completion_ids, decision.completion_logprobs)
        if any(ids) and not self._may_keep_ids(event):
            self.tally.turns_without_ids += 1
            ids = ((), (), ())
        return replace(
            decision,
            candidates=tuple(
                self._value(text, "event.decision.candidates") or "" for text in decision.candidates
            ),
            policy=self._label(decision.policy, "event.decision.policy"),
            observation=self._new_reference(decision.observation),
            prompt_ids=ids[0],
            completion_ids=ids[1],
            completion_logprobs=ids[2],
        )

    def _may_keep_ids(self, event: Event) -> bool:
        """Token ids spell the texts of a turn: they stay if those do, as they were."""
        names = _references_of(event)
        known = all(name in self.source.contents and name not in self.changed for name in names)
        return self.contents == "keep" and bool(names) and known

    def _score(self, score: Score) -> Score:
        return replace(
            score,
            channel=self._name(score.channel, "score.channel"),
            agent=_if_known(self._name, score.agent, "score.agent"),
            event=_if_known(self._name, score.event, "score.event"),
        )

    def _name(self, name: str, field: str) -> str:
        return self.scrubber.scrub(name, field)

    def _word(self, word: str, field: str) -> str:
        """A word of the model, or one that an import brought."""
        return word if word in PLAIN else self._name(word, field)

    def _label(self, label: str, field: str) -> str:
        """A name that people give: several words of it are a text."""
        if self.contents != "keep" and len(label.split()) > 1:
            return self._hidden(label)
        return self._name(label, field)

    def _hidden(self, text: str) -> str:
        return f"<text:{self.scrubber.digest('text', text, 6)}>"

    def _value(self, value: Any, field: str) -> Any:
        """A value of JSON, its strings treated as texts."""
        if isinstance(value, dict):
            return {self._key(k, field): self._value(v, field) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._value(inner, field) for inner in value]
        return self._text(value, field) if isinstance(value, str) else value

    def _text(self, text: str, field: str) -> str | None:
        if text in self.references:
            return self.references[text]
        if self.contents == "keep" or not text or text in PLAIN:
            return self.scrubber.scrub(text, field)
        self.tally.texts[f"{_DONE[self.contents]} in {field}"] += 1
        return self._hidden(text) if self.contents == "hash" else None

    def _key(self, key: str, field: str) -> str:
        """The name of an attribute stays if it looks like a name; two never become one."""
        if self.contents == "keep" or _IDENTIFIER.fullmatch(key):
            return self.scrubber.scrub(key, field)
        return self._hidden(key)


_DONE = {"hash": "hashed", "drop": "dropped"}
_IDENTIFIER = re.compile(r"[\w.-]{0,64}")


def _if_known(rename: Callable[[str, str], str], name: str | None, field: str) -> str | None:
    return None if name is None else rename(name, field)


def _references_of(event: Event) -> list[str]:
    seen = event.decision.observation if event.decision is not None else None
    return [name for name in (event.content, seen) if name is not None]
