"""Claude Code transcripts: what each file held, and what cannot be known."""

from collections import Counter
from collections.abc import Iterator, Sequence

from stretto.importers.claude_code.events import Lane
from stretto.importers.claude_code.records import Entry, Record, Transcript
from stretto.importers.claude_code.threads import kind_of
from stretto.importers.claude_code.weave import Woven
from stretto.importers.kit.loom import Source
from stretto.importers.kit.report import FileReport, Notice


def file_reports(transcripts: Sequence[Transcript], woven: Sequence[Woven]) -> list[FileReport]:
    """One report a transcript, in their order."""
    counts = _Counts()
    for each in woven:
        counts.add(each)
    return [counts.report(transcript) for transcript in transcripts]


class _Counts:
    """Tallies of all sessions, by file."""

    def __init__(self) -> None:
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.skipped: dict[str, Counter[str]] = {}
        self.duplicates: Counter[str] = Counter()
        self.unpaired: Counter[str] = Counter()
        self.unreliable: dict[str, list[Source]] = {}
        self.notices: dict[str, list[Notice]] = {}

    def add(self, woven: Woven) -> None:
        self.duplicates.update(woven.session.duplicates)
        self.duplicates.update(woven.copies)
        for (file, kind), count in woven.session.dropped.items():
            self.skipped.setdefault(file, Counter())[kind] += count
        for draft in woven.drafts:
            self.kinds[draft.source.file, draft.event.kind] += 1
            if draft.event.tokens is not None and draft.event.tokens.unreliable:
                self.unreliable.setdefault(draft.source.file, []).append(draft.source)
        for lane in woven.lanes:
            for entry in _skipped(lane):
                self.skipped.setdefault(entry.file, Counter())[_kind(entry.record)] += 1
        self._add_notices(woven)
        for source, what in woven.notices:
            self._note(source, what)
        if woven.session.guesses:
            count = len(woven.session.guesses)
            what = f"of {count} records without ids, which agent they belong to is a guess"
            self._note(woven.session.guesses[0].source, what)

    def _add_notices(self, woven: Woven) -> None:
        returned = {draft.event.agent for draft in woven.drafts if draft.event.kind == "return"}
        for lane in woven.lanes:
            call = lane.node.call
            if lane.node.is_counted:
                continue  # of which the notice of its workflow tells
            if call is not None and lane.path not in returned:
                self.unpaired[call.entry.file] += 1
                if not lane.node.is_teammate:
                    self._note(call.entry.source, f"{_name(lane)} never returned")
            elif call is None and lane.entries and not lane.is_root:
                self._note(lane.entries[0].source, f"no spawn is recorded for {_name(lane)}")
        lanes = {lane.path: lane for lane in woven.lanes}
        for path, missing in _unrecorded(woven):
            lane = lanes[path]
            what = f"the last answer of {_name(lane)} is not recorded: {missing:.1f} s of its work"
            self._note(lane.entries[-1].source, what)

    def _note(self, source: Source, what: str) -> None:
        self.notices.setdefault(source.file, []).append(Notice(str(source), what))

    def report(self, transcript: Transcript) -> FileReport:
        file = transcript.file
        skipped = Counter(transcript.skipped) + self.skipped.get(file, Counter())
        return FileReport(
            file=file,
            records=len(transcript.entries),
            skipped=dict(skipped),
            duplicates=self.duplicates[file],
            spawns=self.kinds[file, "spawn"],
            returns=self.kinds[file, "return"],
            unpaired=self.unpaired[file],
            unknown_fields=transcript.unknown_fields,
            unreliable_tokens=len(self.unreliable.get(file, ())),
            stepped_back=transcript.stepped_back,
            warnings=(*transcript.notices, *self.notices.get(file, ()), *self._tokens(file)),
        )

    def _tokens(self, file: str) -> Iterator[Notice]:
        doubtful, turns = self.unreliable.get(file, []), self.kinds[file, "decision"]
        if doubtful:
            count = f"{len(doubtful)} of {turns} turns"
            what = f"sampled tokens of {count} were written before they were known"
            yield Notice(str(min(doubtful)), what)


def _name(lane: Lane) -> str:
    name = lane.node.name
    return f"agent {lane.path} ({name})" if name else f"agent {lane.path}"


def _skipped(lane: Lane) -> Iterator[Entry]:
    for position, entry in enumerate(lane.entries):
        if position not in lane.used:
            yield entry


def _kind(record: Record) -> str:
    kind = kind_of(record)
    return f"{kind}/meta" if kind == "user" and record.is_meta else kind


def _unrecorded(woven: Woven) -> Iterator[tuple[str, float]]:
    """Agents whose last answer came back without being in their transcript, and for how long."""
    for event in woven.events:
        if event.kind == "return" and "unrecorded" in event.attrs:
            yield event.agent, event.attrs["unrecorded"]
