"""Names of users, by the paths that hold them."""

import re
from collections.abc import Iterable
from re import Match
from urllib.parse import unquote

from stretto.private_strings.rule import SEPARATOR, Rule, in_any_case

ORDINARY_NAMES = {
    # Names of users that name nobody.
    *("admin", "administrator", "agent", "appuser", "azureuser", "build", "builder", "centos"),
    *("circleci", "codespace", "coder", "container", "debian", "default", "deploy", "developer"),
    *("docker", "ec2-user", "fedora", "gitpod", "guest", "jenkins", "jovyan", "kali", "linux"),
    *("mysql", "nginx", "node", "nobody", "nonroot", "oracle", "postgres", "public", "python"),
    *("redis", "root", "runner", "sandbox", "server", "service", "shared", "somebody", "someone"),
    *("student", "swebench", "test", "tester", "testuser", "travis", "ubuntu", "user", "username"),
    *("users", "vagrant", "vscode", "work", "worker", "workspace", "your-name", "yourname"),
    *("your_name", "your-username", "your_username", "www-data", "youruser"),
    # Assistants have homes, too; their names stand in those of models.
    *("anthropic", "assistant", "chatgpt", "claude", "codex", "copilot", "cursor", "devin"),
    *("gemini", "model", "ollama", "openai", "opencode", "openhands", "stretto"),
    # Pages below `/home`.
    *("about", "components", "dashboard", "home", "index", "login", "page", "pages", "profile"),
    *("screens", "settings", "team", "widgets"),
    # Words of the trace, and of placeholders.
    *("call", "decision", "e-mail", "human", "lead", "mail", "message", "password", "private"),
    *("result", "return", "spawn", "stop", "system", "task", "text", "token", "tool"),
}
"""Names that are replaced in a path, but not elsewhere: they are words like others."""
HOME_WORDS = ("home", "users", "settings")
"""One of them is in every path to a home."""
SHORTEST_USER = 4
"""Letters from which the name of a user is told from other words."""

_NO_NAME = r"/\\\s\"'`<>:;,|*?()\[\]{}$&#!=%\u2018\u2019\u201c\u201d\u2026"
_WORD = rf"\w(?:[^{_NO_NAME}]*[^{_NO_NAME}.])?"
_SPACED = rf"{_WORD}(?:%20{_WORD})*"
_NAME = rf"(?P<it>{_SPACED})"
_WINDOWS_NAME = rf"(?P<it>\w[\w.@-]*(?: [\w.-]+){{0,2}}(?={SEPARATOR})|{_SPACED})"
# `/` and `\` in a URL, and where JSON escapes them.
_ESCAPED = r"(?:%(?:25)?(?:2F|5C)|\\{1,8}u00(?:2F|5C))"

# What stands before `/home/` or `/Users/` where that is the root of a file system, and not a folder
# of a project: `src/home/index.ts` names nobody.
_ROOT = re.compile(
    r"(?:\\[nrt]|(?:\A|[^\w.@])[A-Za-z]|\d[mK]|%[0-9A-Fa-f]{2}"
    r"|(?:\A|[^\w.-])(?:data|export|host|hostfs|media|mnt|net|nfs|private|rootfs|srv|usr|var|wsl)"
    r"|Macintosh(?: |\\ |%20)HD|//wsl(?:\$|\.localhost)/[^/\s]+"
    r"|(?<!http)(?<!https):///?[^/\s\"']+)\Z"
)
_INSIDE_A_PROJECT = ".@~)]}*_"
_LONGEST_ROOT = 80


def _is_home(match: Match[str]) -> bool:
    """Whether a path begins where the pattern found one."""
    text, start = match.string, match.start()
    before = text[start - 1 : start]
    if not before or not (before.isalnum() or before in _INSIDE_A_PROJECT):
        return True
    return _ROOT.search(text, max(0, start - _LONGEST_ROOT), start) is not None


def _begins_a_word(match: Match[str]) -> bool:
    before = match.string[max(0, match.start() - 2) : match.start()]
    return not (before[-1:].isascii() and before[-1:].isalnum()) or before in ("\\n", "\\r", "\\t")


def _is_somebody(match: Match[str]) -> bool:
    return match["it"].lower() not in ORDINARY_NAMES


HOMES = (
    Rule(
        "user",
        ("users\\", "users/", "settings\\", "settings/"),
        re.compile(
            rf"(?i:(?:[A-Z]:|/mnt/[A-Z]|/cygdrive/[A-Z]){SEPARATOR}"
            rf"(?:Users|Documents and Settings){SEPARATOR}){_WINDOWS_NAME}"
        ),
    ),
    Rule("user", ("/home/", "/users/"), re.compile(rf"/(?:home|Users)/{_NAME}"), _is_home),
    # `\\server\Users\ann`, `\\wsl$\Ubuntu\home\ann`: twice as many backslashes before the server.
    Rule(
        "user",
        ("\\users\\", "\\home\\", "\\home$\\", "\\homes\\"),
        re.compile(
            r"(?<!\\)(?P<s>\\{1,8})(?P=s)[\w.$-]+(?P=s)(?:[\w.$ -]+(?P=s)){0,2}?"
            rf"(?i:Users|home\$?|homes)(?P=s)(?!\\){_WINDOWS_NAME}"
        ),
    ),
    Rule(
        "user",
        ("home%", "users%", "home\\", "users\\"),
        re.compile(
            rf"(?i:{_ESCAPED}(?:home|Users){_ESCAPED})"
            r"(?P<it>\w[\w.-]*(?:%(?:25)?20\w[\w.-]*)*)",
            re.ASCII,
        ),
        _is_home,
    ),
    # How Claude Code names the folders of projects.
    Rule(
        "user",
        ("-home-", "-users-"),
        re.compile(
            r"(?:(?<![\w/-])|(?<=projects/)|(?<=projects\\)|(?<=[A-Z]-))"
            r"-(?:home|Users)-(?P<it>[^-/\\\s\"'<>]+)"
        ),
    ),
)
"""Paths to homes: the names in them are replaced elsewhere as well."""


def _is_a_variable(match: Match[str]) -> bool:
    """`USER=ann`, but not `POSTGRES_USER=ann` or `$USER`."""
    before = match.string[match.start() - 1 : match.start()]
    return _begins_a_word(match) and before not in ("_", "$") and _is_somebody(match)


OTHER_USERS = (
    Rule(
        "user",
        ("~",),
        re.compile(r"~(?<![\w~.@]~)(?P<it>[A-Za-z_][\w.-]{2,31})/", re.ASCII),
        _is_somebody,
    ),
    Rule(
        "user",
        ("user", "logname"),
        re.compile(
            r"(?:SUDO_USER|USER(?:NAME)?|LOGNAME)(?:=[\"']?|\\*\":\s*\\*\")"
            r"(?P<it>[A-Za-z][\w.-]*+)(?![(\[$])"
        ),
        _is_a_variable,
    ),
)
"""Names that other things have, too: replaced only where they stand so."""


def users_in(text: str) -> set[str]:
    """The users that paths in a text name, as far as their names can stand for them elsewhere."""
    lower = text.lower()
    if not any(word in lower for word in HOME_WORDS):
        return set()
    rules = [rule for rule in HOMES if rule.may_be_in(text, lower)]
    matches = (
        match for rule in rules for match in rule.pattern.finditer(text) if rule.is_private(match)
    )
    found = {form for match in matches for form in _forms(match["it"].lower())}
    return {n for n in found - ORDINARY_NAMES if len(n) >= SHORTEST_USER and not n.isdigit()}


def _forms(name: str) -> tuple[str, ...]:
    """A name as it stands in a path, with its spaces, and its first word: the rest may be text."""
    spaced = unquote(name.replace("%25", "%"))
    return (name, spaced, spaced.partition(" ")[0]) if spaced != name else (name,)


def words_of(users: Iterable[str]) -> tuple[Rule, ...]:
    """Rules for the names of users wherever they stand as a word of their own, in any case."""
    names = sorted(users, key=lambda name: (-len(name), name))
    if not names:
        return ()
    pattern = rf"(?P<it>{in_any_case(('', name) for name in names)})(?![A-Za-z0-9])"
    return (Rule("user", tuple(names), re.compile(pattern), _begins_a_word),)
