"""Private keys, tokens that are handed over, and passwords, by the words around them."""

import math
import re
from collections import Counter
from re import Match

from stretto.private_strings.rule import IS, QUOTE, START, Rule, in_any_case

LEAST_ENTROPY = 3.0
"""Bits a character above which an assigned value is taken for a secret, not for a word."""

PASSWORDS = (("pass", "word"), ("pass", "wd"), ("passp", "hrase"), ("_p", "wd"), (";p", "wd"))
SECRETS = (
    *PASSWORDS,
    *((f"{word}{between}", "key") for word in ("api", "access") for between in ("_", "-", "")),
    *(("to", "ken"), ("se", "cret"), ("cre", "dential")),
)
"""Names whose values are secrets; each in two parts, as `in_any_case` wants them."""

LEAST_PASSWORD, LEAST_SECRET = 4, 6
"""Characters of a value; what is shorter is not taken for one."""
LEAST_PAIR = 12
"""Characters of a cookie with its name."""

_PASSWORD_HINTS = tuple(head + tail for head, tail in PASSWORDS)
_SECRET_HINTS = tuple(head + tail for head, tail in SECRETS)

# Code that gets a secret from elsewhere, and words that hold its place.
_ELSEWHERE = re.compile(
    r"[{<*]|\$(?:[{(]|[A-Za-z_]\w*\W*$)|%[s(]|(?:~|\.\.?)?/[a-z._-]+/"
    r"|(?:self|this|os|process|environ|env|config|cfg|settings|args|opts|options|request|req"
    r"|params|props|ctx|data|body|user|form|secrets|vars|context|faker|hashlib)\b[.\[(]"
    r"|(?:bearer|string|password|passwd|secret|token|required|optional|undefined|redacted)\b\W*$",
    re.IGNORECASE,
)
_SYMBOL = re.compile(r"[!@#$%^&*+?~]")


def _is_random(value: str) -> bool:
    """Whether a value looks drawn at random: Shannon entropy of its characters, and a digit."""
    counts = Counter(value).values()
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
    return bits >= LEAST_ENTROPY and (any(map(str.isdigit, value)) or len(value) >= 32)


def _is_literal(value: str) -> bool:
    """Whether a value is the secret itself: no code, no word for one, no row of stars."""
    characters = set(filter(str.isalnum, value))
    is_filler = len(characters) < 2 and not any(map(str.isdigit, characters))
    return _ELSEWHERE.match(value) is None and not is_filler


def _has_digit(match: Match[str]) -> bool:
    return any(map(str.isdigit, match["it"])) or len(match["it"]) >= 32


def _holds_literal(match: Match[str]) -> bool:
    return _is_literal(match["it"])


def _is_bare_secret(match: Match[str]) -> bool:
    return _is_literal(match["it"]) and _is_random(match["it"])


def _is_bare_password(match: Match[str]) -> bool:
    """Letters with digits or signs among them, or a number that is no count: no word of a text."""
    value = match["it"].rstrip("!?.*+,")
    if value.isdigit():
        return len(value) >= LEAST_SECRET
    mixed = any(map(str.isdigit, value)) or _SYMBOL.search(value) is not None
    return mixed and any(map(str.isalpha, value)) and _is_literal(value)


def _is_cookie(match: Match[str]) -> bool:
    return len(match["it"]) >= LEAST_PAIR and any(map(str.isdigit, match["it"]))


_BEGIN = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_END = r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
_PUTTY = r"PuTTY-User-Key-File-\d: .*?(?:Private-MAC: \w+|\Z)"

# A placeholder, as `<token:1f0c9a22b4d7>`, looks like an assignment too.
_NO_PLACEHOLDER = r"(?!:[0-9a-f]{12}>)"
_PASSWORD = in_any_case(PASSWORDS) + _NO_PLACEHOLDER
_SECRET = in_any_case(SECRETS) + _NO_PLACEHOLDER
_MORE = rf"[\w-]{{0,40}}(?:{QUOTE})?{IS}"
# A comma or `&` belongs to a password unless something else begins behind it.
_BARE = r"(?P<it>(?:[^\s\"'<>`,;&()\[\]{}|\\]|[,&](?!\s|[\w-]+[=:]|$)){4,}+)(?![(\[{])"
_SPACE = r"(?:\s|\\[nrt])+"
_PAIR = r"[\w.-]+=[^\s\"'\\;,<>]*"
_QUERY = r"(?:[?&]|&amp;|\\u0026)[\w.-]*(?i:sig|signature|key|auth|token|credential|secret)="


def _quoted(least: int) -> str:
    """A value up to the quote before it, the same one: JSON in JSON has escaped ones inside."""
    inner = rf"(?:(?!(?<!\\)(?P=quote))[^\s<>]){{{least},}}"
    return rf"(?P<quote>\\*[\"'])(?P<it>{inner})(?<!\\)(?P=quote)"


PRIVATE_KEY = Rule(
    "private key",
    ("private key", "putty-user-key"),
    re.compile(rf"(?P<it>{_BEGIN}.*?{_END}|{_PUTTY})", re.DOTALL),
)

TOKENS = (
    # JSON web tokens: their header begins with `{"`, in base64.
    Rule("token", ("eyj",), re.compile(START + r"(?P<it>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)")),
    Rule(
        "token",
        ("bearer",),
        re.compile(r"(?i:bearer)\s+(?P<it>[A-Za-z0-9._~+/-]{8,}=*)"),
        _has_digit,
    ),
    Rule(
        "token",
        ("authorization",),
        re.compile(
            rf"(?i:authorization(?:{QUOTE})?\s*[:=]\s*(?:{QUOTE})?basic)\s+(?P<it>[\w+/-]+=*)"
        ),
    ),
    Rule(
        "token",
        ("cookie",),
        re.compile(
            rf"(?i:cookie(?:{QUOTE})?\s*[:=]\s*|--cookie[ =])(?:{QUOTE})?"
            rf"(?P<it>{_PAIR}(?:; ?{_PAIR})*)"
        ),
        _is_cookie,
    ),
    Rule(
        "token",
        ("sig=", "signature=", "key=", "auth=", "token=", "credential=", "secret="),
        re.compile(rf"{_QUERY}(?P<it>[\w%+/.~-]{{16,}}=*)"),
        _is_bare_secret,
    ),
)

PASSWORD_RULES = (
    Rule(
        "password",
        ("://",),
        re.compile(r"://[^/\s:@\"'<>]*:(?P<it>[^/\s\"'<>]+)@"),
        _holds_literal,
    ),
    Rule(
        "password",
        ("curl",),
        re.compile(
            rf"\bcurl\b[^\n]{{0,300}}?\s(?:-u|--user)[ =]?(?:{QUOTE})?[^\s:\"'\\]*:"
            r"(?P<it>[^\s\"'\\]+)"
        ),
        _holds_literal,
    ),
    Rule(  # .netrc
        "password",
        ("machine",),
        re.compile(
            rf"\bmachine{_SPACE}\S+?{_SPACE}login{_SPACE}\S+?{_SPACE}password{_SPACE}"
            r"(?P<it>[^\s\"'\\]+)"
        ),
    ),
    Rule(
        "password",
        _PASSWORD_HINTS,
        re.compile(_PASSWORD + _MORE + _quoted(LEAST_PASSWORD)),
        _holds_literal,
    ),
    Rule(
        "password",
        _SECRET_HINTS,
        re.compile(_SECRET + _MORE + _quoted(LEAST_SECRET)),
        _holds_literal,
    ),
    Rule("password", _PASSWORD_HINTS, re.compile(_PASSWORD + IS + _BARE), _is_bare_password),
    Rule(
        "password",
        _SECRET_HINTS,
        re.compile(rf"{_SECRET}{_MORE}(?P<it>[\w+/=.~-]{{12,}}+)(?![(\[])"),
        _is_bare_secret,
    ),
)
