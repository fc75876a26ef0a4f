"""The tagged pool: the survey's figures, the vocabulary, and what the code implements."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.corpus import EXCLUDED, POOL, add, coverage, flaws, read_pool, statistics
from stretto.corpus.coverage import claims
from stretto.corpus.identifiers import canonical
from stretto.corpus.statistics import page
from stretto.corpus.vocabulary import TAGS
from stretto.errors import StrettoError

ROOT = Path(__file__).parents[2]
SURVEY = ROOT.parent / "shared" / "data" / "survey"

PAPER = {
    "key": "new-one",
    "title": "A title, with a comma",
    "first_author": "Doe, Jane",
    "year": "2026",
    "identifier": "arXiv:2601.00001",
    "category": "rl_method",
    "is_rl": "yes",
    "reward_type": "shared",
    "credit_granularity": "message",
    "orchestration_form": "swarm",
    "scenario": "math",
    "is_core": "core",
}
RECORD = {
    "record_id": "E900",
    "title": "Looked at",
    "source": "arXiv",
    "query_family": "safety",
    "identifier": "arXiv:2601.00002",
    "date_screened": "2026-05-01",
    "stage": "abstract_screen",
    "reason": "out_of_scope",
}


@pytest.fixture
def own(tmp_path):
    """A copy of the pool that a test may change."""
    for file in (POOL, EXCLUDED):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path / POOL.name, tmp_path / EXCLUDED.name


def changed(paths, line, old, new):
    """Change one line of the papers, and say what is wrong with the pool then."""
    lines = paths[0].read_text().splitlines()
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    paths[0].write_text("\n".join(lines) + "\n")
    return list(flaws(read_pool(*paths)))


# ---- the survey's figures

HEADLINES = {"Retained entries": "retained", "Excluded decisions": "excluded"}
HEADLINES["Audited records"] = "audited"
COUNTS = {"Retained Category Counts": "category", "Reward Type Counts": "reward_type"}
COUNTS["Credit Granularity Counts"] = "credit_granularity"


def snapshot():
    """Every number of the survey's statistics page, by where it stands."""
    path = SURVEY / "STATS.md"
    if not path.exists():
        pytest.skip("the survey's statistics are not here")
    found, section, columns = {}, "", []
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("## "):
            section = line[3:]
        elif item := re.fullmatch(r"- `?([\w ]+)`?: (\d+)", line):
            found[section, item[1]] = int(item[2])
        elif line.startswith("|") and not cells[-1].isdigit() and "---" not in line:
            columns = cells[1:]
        elif line.startswith("|") and "---" not in line:
            for column, cell in zip(columns, cells[1:], strict=True):
                found[section, cells[0], column] = int(cell)
    return found


def figure(found, where):
    """The same number of ours."""
    section, *cell = where
    if section in COUNTS:
        return found.counts[COUNTS[section]][cell[0]]
    if section == "Headline Counts":
        return getattr(found, HEADLINES[cell[0]])
    tags = [part.lower().replace(" ", "_") for part in section.split(" x ")]
    (table,) = (each for each in found.cross if [each.rows, each.columns] == tags)
    return table.counts[cell[0]][cell[1]]


@pytest.mark.parametrize("ours", [True, False], ids=["our data", "the survey's files"])
def test_every_figure_of_the_survey_comes_out(ours):
    expected = snapshot()
    assert len(expected) == 3 + 6 + 9 + 6 + 9 * 6 + 7 * 6  # counted on the page by hand
    pool = read_pool() if ours else read_pool(SURVEY / "papers.csv", SURVEY / "excluded.csv")
    found = statistics(pool)
    assert {where: figure(found, where) for where in expected} == expected
    assert sum(map(len, (found.counts[tag] for tag in COUNTS.values()))) == 6 + 9 + 6


def test_our_data_are_the_survey_s_facts():
    path = SURVEY / "papers.csv"
    if not path.exists():
        pytest.skip("the survey's pool is not here")
    theirs = list(csv.DictReader(path.read_text().splitlines()))
    ours = [row.values for row in read_pool().papers.rows]
    same = ("key", "title", "first_author", "year", *TAGS)
    plain = [{name: each[name].replace("\\'{e}", "é") for name in same} for each in theirs]
    assert [{name: each[name] for name in same} for each in ours] == plain
    numbers = [each["identifier"].removeprefix("arXiv:") for each in ours]
    assert all(b["arxiv_id"] in ("", a) for a, b in zip(numbers, theirs, strict=True))
    prose = POOL.read_text() + EXCLUDED.read_text()
    assert not any(each["one_liner"] in prose for each in theirs)


@pytest.mark.parametrize("tag", TAGS)
def test_counts_of_a_tag_and_of_its_cross_tabs_add_up(tag):
    found = statistics(read_pool())
    assert sum(found.counts[tag].values()) == found.retained
    for table in found.cross:
        rows = {row: sum(cells.values()) for row, cells in table.counts.items()}
        assert rows == found.counts[table.rows]


def test_the_page_of_the_documentation_is_up_to_date():
    assert page(statistics(read_pool())) in (ROOT / "docs" / "corpus.md").read_text()


# ---- check


def test_our_pool_has_no_flaw():
    assert list(flaws(read_pool())) == []


@pytest.mark.parametrize(
    ("old", "new", "field", "what", "hint"),
    [
        ("shared", "shard", "reward_type", 'no such value "shard"', 'did you mean "shared"?'),
        ("rl_method", "rl-method", "category", '"rl-method"', 'did you mean "rl_method"?'),
        ("magrpo", "MAGRPO", "key", '"MAGRPO"', "small letters"),
        ("magrpo", "marft", "key", '"marft" is taken', ""),
        (",2025,", ",25,", "year", '"25"', "four digits"),
        ("arXiv:2508.04652", "2508.04652", "identifier", '"2508.04652"', "arXiv:…"),
        ("arXiv:2508.04652", "arXiv:2504.16129", "identifier", "is taken", ""),
        ("arXiv:2508.04652", "arXiv:2305.14325", "identifier", "is taken", ""),
    ],
)
def test_a_flaw_names_file_line_and_field(own, old, new, field, what, hint):
    found = changed(own, 2, old, new)
    told = [str(flaw.error()) for flaw in found]
    assert [flaw.field for flaw in found] == [field]
    assert what in told[0]
    assert hint in told[0]
    if "taken" not in what:
        assert told[0].startswith(f"{own[0]}:2: {field}: ")


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (lambda text: text.replace("reward_type", "reward", 1), ":1", "no column reward_type"),
        (lambda text: text.replace("magrpo,", "magrpo,x,", 1), ":2", "13 values in 12 columns"),
        (lambda text: text + '"cut', ":86", "no CSV"),
        (lambda text: "", "", "the file is empty"),
    ],
)
def test_a_file_that_is_no_table_is_told(own, change, where, what):
    own[0].write_text(change(own[0].read_text()))
    with pytest.raises(StrettoError, match=re.escape(what)) as error:
        read_pool(*own)
    assert error.value.where == f"{own[0]}{where}"


# ---- add


def test_a_new_paper_is_written_and_its_cells_are_told(own):
    before = own[0].read_bytes()
    changes = {change.cell: (change.before, change.after) for change in add(PAPER, *own)}
    assert own[0].read_bytes().startswith(before)
    assert read_pool(*own).papers.rows[-1].values == PAPER
    assert changes["retained"] == (84, 85)
    assert changes["category: rl_method"] == (42, 43)
    assert changes["reward_type x credit_granularity: shared x message"] == (1, 2)
    assert changes["orchestration_form x credit_granularity: swarm x message"] == (0, 1)
    assert len(changes) == 2 + len(TAGS) + 2


def test_an_excluded_record_goes_to_the_log(own):
    changes = {change.cell: (change.before, change.after) for change in add(RECORD, *own)}
    assert changes == {
        "excluded": (32, 33),
        "audited": (116, 117),
        "stage: abstract_screen": (16, 17),
        "reason: out_of_scope": (4, 5),
    }


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"scenario": "maths"}, ":86: scenario"),
        ({"key": "magrpo"}, ":86: key"),
        ({"identifier": "arXiv:2305.14325"}, ":2: identifier"),
    ],
)
def test_a_record_with_a_flaw_leaves_everything_as_it_was(own, change, where):
    before = own[0].read_bytes()
    with pytest.raises(StrettoError) as error:
        add(PAPER | change, *own)
    assert error.value.where.endswith(where)
    assert own[0].read_bytes() == before
    assert sorted(own[0].parent.iterdir()) == sorted(own)


def test_all_flaws_of_a_record_are_told_at_once(own):
    with pytest.raises(StrettoError) as error:
        add(PAPER | {"scenario": "maths", "is_rl": "maybe", "year": "26"}, *own)
    assert error.value.where == f"{own[0]}:86"
    assert [part.partition(":")[0] for part in error.value.what.split("; ")] == [
        "year",
        "is_rl",
        "scenario",
    ]
    assert 'did you mean "math"?' in error.value.what


def test_an_error_names_the_files_that_are_there(own):
    with pytest.raises(StrettoError) as error:
        add(PAPER | {"identifier": "arXiv:2305.14325"}, *own)
    assert error.value.hint == f"by {own[0]}:86"


def test_nothing_is_added_to_columns_of_others(own):
    own[0].write_text(own[0].read_text().replace("is_core", "core", 1))
    with pytest.raises(StrettoError, match="no column is_core"):
        add(PAPER, *own)


# ---- what the code implements


def test_every_paper_that_the_code_names_is_in_the_pool():
    found = coverage([row.values["key"] for row in read_pool().papers.rows])
    assert "stretto.credit.group.role" in found["dr-mas"]
    assert "stretto.credit.group.relative" in found["deepseekmath2024"]
    assert "stretto.rewards.orchestration" in found["kimi-k2-5"]


def package(tmp_path, source):
    (tmp_path / "pack" / "inner").mkdir(parents=True)
    (tmp_path / "pack" / "inner" / "__init__.py").write_text(source)
    return tmp_path / "pack"


def test_a_constant_in_a_module_is_all_it_takes(tmp_path):
    root = package(tmp_path, 'import does_not_exist\nPAPERS = ("a", "b")\n')
    (root / "other.py").write_text('PAPERS = ("b",)\n')
    assert coverage(["a", "b", "c"], root) == {
        "a": ["pack.inner"],
        "b": ["pack.inner", "pack.other"],
        "c": [],
    }


@pytest.mark.parametrize(
    ("source", "what", "hint"),
    [
        ('\nPAPERS = ("dr-mass",)', 'no paper "dr-mass"', 'did you mean "dr-mas"?'),
        ("\nPAPERS = (1,)", "no tuple of keys", "write PAPERS"),
        ("\nPAPERS = KEYS", "no tuple of keys", "write PAPERS"),
    ],
)
def test_a_constant_that_names_no_paper_is_told_with_its_line(tmp_path, source, what, hint):
    root = package(tmp_path, source)
    with pytest.raises(StrettoError, match=what) as error:
        coverage(["dr-mas"], root)
    assert error.value.where == f"{root / 'inner' / '__init__.py'}:2"
    assert hint in error.value.hint


def test_other_names_are_no_claims(tmp_path):
    source = 'MY_PAPERS = ("a",)\ndef f():\n    PAPERS = ("b",)\n'
    assert list(claims(package(tmp_path, source))) == []


# ---- one paper, many names

ARXIV = [
    "arXiv:2508.04652",
    "https://arxiv.org/abs/2508.04652",
    "http://www.arxiv.org/abs/2508.04652v2",
    "https://arxiv.org/pdf/2508.04652",
    "https://arxiv.org/pdf/2508.04652v1.pdf",
    "doi:10.48550/arXiv.2508.04652",
    "https://doi.org/10.48550/arxiv.2508.04652",
]
OTHERS = [
    ("OpenReview:ur295YVtmt", "https://openreview.net/forum?id=ur295YVtmt"),
    ("ACL:2025.acl-long.476", "https://aclanthology.org/2025.acl-long.476.pdf"),
    ("ACL:2025.acl-long.476", "doi:10.18653/v1/2025.acl-long.476"),
    ("doi:10.1287/moor.27.4.819.297", "https://doi.org/10.1287/MOOR.27.4.819.297"),
    ("https://cognition.ai/", "http://www.cognition.ai"),
]


@pytest.mark.parametrize(("one", "other"), [(ARXIV[0], each) for each in ARXIV[1:]] + OTHERS)
def test_a_paper_is_taken_under_all_its_names(own, one, other):
    assert canonical(one) == canonical(other)
    with pytest.raises(StrettoError, match="is taken") as error:
        add(PAPER | {"identifier": other}, *own)
    assert error.value.where.endswith(": identifier")


def test_identifiers_of_other_papers_stay_apart():
    assert canonical("OpenReview:ur295YVtmt") != canonical("OpenReview:UR295YVTMT")
    ours = [row.values["identifier"] for row in read_pool().papers.rows]
    assert len(set(map(canonical, ours))) == len(ours)


def test_a_title_is_taken_whatever_its_case_and_signs(own):
    add(PAPER, *own)
    again = {"key": "again", "identifier": "arXiv:2601.00009", "title": "A TITLE with a  comma."}
    with pytest.raises(StrettoError, match="is taken") as error:
        add(PAPER | again, *own)
    assert error.value.where.endswith(":87: title")
    assert error.value.hint == f"by {own[0]}:86"


# ---- the command line


def said(capsys, *arguments):
    code = main(["corpus", *map(str, arguments)])
    return code, json.loads(capsys.readouterr().out)


def test_every_action_prints_json(own, capsys):
    files = ("--papers", own[0], "--excluded", own[1], "--json")
    code, found = said(capsys, "stats", *files)
    assert (code, found["audited"], found["counts"]["category"]["rl_method"]) == (0, 116, 42)
    assert said(capsys, "check", *files) == (
        0,
        {"ok": True, "papers": 84, "excluded": 32, "flaws": []},
    )
    code, found = said(capsys, "modules", *files)
    assert (code, found["papers"]) == (0, 84)
    assert found["implemented"] == sum(map(bool, found["modules"].values()))
    flags = [word for k, v in PAPER.items() for word in (f"--{k.replace('_', '-')}", v)]
    code, found = said(capsys, "add", *flags, *files)
    assert (code, found["added"]) == (0, PAPER)
    flags = [word for k, v in RECORD.items() for word in (f"--{k.replace('_', '-')}", v)]
    code, found = said(capsys, "exclude", *flags, *files)
    assert (code, found["added"]) == (0, RECORD)
    code, found = said(capsys, "stats", *files)
    assert found["audited"] == 118


def test_a_pool_with_flaws_ends_with_1_and_a_line_for_each(own, capsys):
    own[0].write_text(own[0].read_text().replace("shared,agent", "shard,agnt", 1))
    assert main(["corpus", "check", "--papers", str(own[0]), "--excluded", str(own[1])]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines[:2]] == [f"{own[0]}:2"] * 2
    assert lines[2] == "84 papers, 32 excluded: 2 flaws"


def test_modules_and_titles_never_run_into_each_other(capsys):
    assert main(["corpus", "modules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    modules = [line.strip() for line in lines if line.startswith(" ")]
    assert "stretto.rewards.presets" in modules
    assert all(re.fullmatch(r"stretto[.\w]+", module) for module in modules)


@pytest.mark.parametrize("action", ["stats", "check", "modules"])
def test_people_get_lines(action, capsys):
    assert main(["corpus", action]) == 0
    assert capsys.readouterr().out.strip()


def test_an_action_that_is_none_gets_a_suggestion(capsys):
    assert main(["corpus", "stat"]) == 2
    assert 'did you mean "stats"?' in capsys.readouterr().err


def test_reading_the_code_loads_nothing_heavy():
    code = (
        "import sys; from stretto.corpus import *; p = read_pool();"
        "coverage([row.values['key'] for row in p.papers.rows]); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "polars"} & set(done.stdout.split())
