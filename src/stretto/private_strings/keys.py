"""The keys of services: how they begin, and how they go on."""

import re
from re import Pattern

from stretto.private_strings.rule import IS, QUOTE, START, Rule

_HEX = r"[a-f0-9]"
_ALL = r"[A-Za-z0-9]"
_END = r"(?![A-Za-z0-9_])"

KEYS = {
    # Models. `sk-` begins names of style sheets, too (`sk-estimator-doc-link`): those have no
    # digits and no capitals.
    "sk-": r"(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter, Langfuse
    "sk_": rf"(?:{_HEX}{{48}}{_END}|(?:live|test)_{_ALL}{{10,}})",  # ElevenLabs, Stripe
    "AIza": r"[A-Za-z0-9_-]{30,}",  # Google
    "ya29.": r"[A-Za-z0-9_-]{20,}",
    "GOCSPX-": r"[A-Za-z0-9_-]{20,}",
    "hf_": r"[A-Za-z0-9]{20,}",
    **dict.fromkeys(("gsk_", "nvapi-", "xai-", "tvly-", "r8_", "lsv2_"), r"[A-Za-z0-9_-]{20,}"),
    "pplx-": rf"{_ALL}{{30,}}",
    "fw_": rf"{_ALL}{{20,}}",
    "pcsk_": r"[A-Za-z0-9_]{30,}",
    # Code, packages, containers.
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"{_ALL}{{20,}}"),
    "github_pat_": r"[A-Za-z0-9_]{20,}",
    **dict.fromkeys(("glpat-", "gldt-", "glrt-", "glptt-"), r"[A-Za-z0-9_-]{16,}"),
    "npm_": rf"{_ALL}{{30,}}",
    "pypi-": r"[A-Za-z0-9_-]{30,}",
    "dckr_pat_": r"[A-Za-z0-9_-]{20,}",
    # Clouds and what runs on them.
    **dict.fromkeys(("AKIA", "ASIA", "AROA", "AIDA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    **dict.fromkeys(("dop_v1_", "doo_v1_", "dor_v1_"), rf"{_HEX}{{40,}}"),
    "dapi": rf"{_HEX}{{32}}(?:-\d)?{_END}",  # Databricks
    "vercel_": rf"{_ALL}{{24}}{_END}",
    "sbp_": rf"{_HEX}{{40}}{_END}",  # Supabase
    **dict.fromkeys(("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), r"[A-Za-z0-9_.-]{30,}"),
    **dict.fromkeys(("hvs.", "hvb."), r"[A-Za-z0-9_-]{20,}"),  # Vault
    **dict.fromkeys((f"dp.{kind}." for kind in ("pt", "st", "sa", "ct")), rf"{_ALL}{{30,}}"),
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{50,}",
    # Watching.
    "glsa_": rf"{_ALL}{{32}}_[A-Fa-f0-9]{{8}}",  # Grafana
    "glc_": r"[A-Za-z0-9+/]{40,}=*",
    "sntrys_": r"[A-Za-z0-9+/=_-]{40,}",  # Sentry
    "sntryu_": rf"{_HEX}{{40,}}",
    "NRAK-": rf"{_ALL}{{20,}}",  # New Relic
    **dict.fromkeys(("phx_", "phc_"), rf"{_ALL}{{30,}}"),  # PostHog
    # Money, mail, messages, documents.
    "rk_": rf"(?:live|test)_{_ALL}{{10,}}",
    "whsec_": r"[A-Za-z0-9+/]{24,}=*",
    **dict.fromkeys(("shpat_", "shpca_", "shppa_", "shpss_"), r"[A-Fa-f0-9]{32}"),
    **dict.fromkeys(("AC", "SK"), rf"{_HEX}{{32}}{_END}"),  # Twilio
    "SG.": r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    "key-": rf"{_HEX}{{32}}{_END}",  # Mailgun
    "xox": r"[a-z]-[A-Za-z0-9-]{10,}",  # Slack
    "xapp-": r"[A-Za-z0-9-]{10,}",
    **dict.fromkeys(("lin_api_", "lin_oauth_"), rf"{_ALL}{{30,}}"),
    "ntn_": rf"{_ALL}{{40,}}",  # Notion
    "secret_": rf"{_ALL}{{43}}{_END}",
    "figd_": r"[A-Za-z0-9_-]{30,}",
    "ATATT3": r"[A-Za-z0-9_=-]{50,}",  # Atlassian
}
SHORTEST_KEY = 14
"""Characters; no key is shorter."""


def _pattern(prefix: str, rest: str) -> Pattern[str]:
    """The prefix comes first, for `re` finds plain text fast; that a word begins is seen after."""
    start = re.escape(prefix)
    begins = rf"(?:(?<![A-Za-z0-9_]{start})|(?<=\\[nrt]{start}))"
    return re.compile(f"(?P<it>{start}{begins}{rest})")


KEY_RULES = tuple(
    (prefix, Rule("key", (), _pattern(prefix, rest))) for prefix, rest in KEYS.items()
)
"""Rules by the text that must be there."""

# Base64, also as JSON and URLs write it.
_BASE_64 = r"(?:[A-Za-z0-9+/%]|\\{1,8}u002[BbFf])"

OTHER_KEYS = (
    Rule(  # Azure: told by the name before it, whatever it looks like
        "key",
        ("accountkey", "account_key", "sharedaccesskey"),
        re.compile(
            rf"(?i:account_?key|sharedaccesskey)(?:{QUOTE})?{IS}(?:{QUOTE})?"
            rf"(?P<it>{_BASE_64}{{40,}}={{0,2}})"
        ),
    ),
    Rule(  # Telegram
        "key",
        (":aa",),
        re.compile(START + r"(?P<it>\d{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
    ),
    # Whoever knows these addresses can write there.
    Rule(
        "key",
        ("hooks.slack.com",),
        re.compile(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<it>[A-Za-z0-9_/]+)"),
    ),
    Rule(
        "key",
        ("/webhooks/",),
        re.compile(r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<it>\d+/[A-Za-z0-9_-]+)"),
    ),
)
