"""Find what should not leave the house: addresses, user names in paths, keys and tokens.

Rules err towards too much. What they cannot see: names of people and projects in running text,
secrets of a form that no rule knows, and whatever is encoded.
"""

import re

from stretto.private_strings.keys import KEY_RULES, OTHER_KEYS, SHORTEST_KEY
from stretto.private_strings.passwords import PASSWORD_RULES, PRIVATE_KEY, TOKENS
from stretto.private_strings.rule import Name, Rule
from stretto.private_strings.users import HOMES, OTHER_USERS, users_in, words_of

__all__ = ["RULES", "Name", "Rule", "replace_private", "users_in", "words_of"]

# No versions, as in `left-pad@1.2.3.tgz`, and no sizes, as in `icon@2x.png`.
_DOMAIN = r"(?:@|%40)(?!\d+\.\d|\dx\.)(?:[\w-]+\.)+[^\W\d_]{2,}"

EMAIL = Rule(
    "e-mail",
    ("@", "%40"),
    re.compile(rf"(?:(?<=\\[nrt])|(?<![\w.%+-])(?!(?<=\\)[nrt]))(?P<it>[\w.%+-]+{_DOMAIN})"),
    gate=re.compile(_DOMAIN),
)

RULES = (PRIVATE_KEY, *OTHER_KEYS, *TOKENS, *PASSWORD_RULES, EMAIL, *HOMES, *OTHER_USERS)
"""In the order in which they are tried, behind those of `KEY_RULES`."""


def replace_private(text: str, name: Name, rules: tuple[Rule, ...] = RULES) -> str:
    """Replace every private string of a text by what `name(kind, string)` gives for it."""
    if len(text) >= SHORTEST_KEY:
        for rule in [rule for prefix, rule in KEY_RULES if prefix in text]:
            text = rule.replace(text, name)
    lower = text.lower()
    for rule in rules:
        if rule.may_be_in(text, lower):
            text = rule.replace(text, name)
    return text
