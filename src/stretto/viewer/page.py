"""One HTML file that loads nothing: styles, scripts and data are inside, and a policy says so."""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from stretto.viewer.payload import Shown

_STATIC = Path(__file__).parent / "static"
_SCRIPTS = ("format", "model", "layout", "shapes", "paint", "view", "input", "details", "main")
LANES = _SCRIPTS
"""Scripts of a page with traces."""
CURVE = (*_SCRIPTS[:-1], "chart", "main")
"""Scripts of a page with traces and a learning curve."""


def page(title: str, body: str, scripts: Sequence[str]) -> str:
    """A whole page; `body` is markup whose data is escaped already."""
    code = "\n".join(static(f"{name}.js") for name in scripts)
    digest = b64encode(sha256(code.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="stretto">
<title>{escape(title)}</title>
<style>
{static("style.css")}</style>
</head>
<body>
{body}
<script type="module">{code}</script>
</body>
</html>
"""


def static(name: str) -> str:
    """A file that ships with the package."""
    return (_STATIC / name).read_text(encoding="utf-8")


def lanes_view(packed: str, shown: Shown, which: str) -> str:
    """The lanes with their payload; `which` says which of the traces are there, as in `last`."""
    markup = Template(static("lanes.html")).substitute(shown=escape(showing(shown, which)))
    return f'{markup}<script type="application/gzip" id="payload">{packed}</script>'


def showing(shown: Shown, which: str) -> str:
    """How much of what there is can be seen here."""
    if shown.traces_shown == shown.traces:
        return f"all {shown.traces:,} traces"
    return f"showing the {which} {shown.traces_shown:,} of {shown.traces:,} traces"


def embedded(data: Any) -> str:
    """Data as JSON that can stand inside a script element, whatever its strings hold."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", r"\u003c")
    return f'<script type="application/json">{safe}</script>'
