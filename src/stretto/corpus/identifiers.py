"""Which identifiers mean the same publication: a paper has a number, a page, a file and a DOI."""

import re

_SAME = (
    (r"(https?://)?(www\.|export\.)?arxiv\.org/(abs|pdf|html)/(?P<name>\d{4}\.\d{4,5})", "arxiv"),
    (r"((https?://)?(dx\.)?doi\.org/|doi:)10\.48550/arxiv\.(?P<name>\d{4}\.\d{4,5})", "arxiv"),
    (r"arxiv:(?P<name>\d{4}\.\d{4,5})", "arxiv"),
    (r"((https?://)?(dx\.)?doi\.org/|doi:)10\.18653/v1/(?P<name>\S+)", "acl"),
    (r"(https?://)?(www\.)?aclanthology\.org/(?P<name>[^\s/?#]+?)(\.pdf)?/?", "acl"),
    (r"acl:(?P<name>\S+)", "acl"),
    (r"((https?://)?(dx\.)?doi\.org/|doi:)(?P<name>10\.\S+)", "doi"),
)
"""Ways to write an identifier, whose case does not matter, to what it is one of."""
_OPEN_REVIEW = re.compile(r"(?:OpenReview:|https?://openreview\.net/(?:forum|pdf)\?id=)([\w-]+).*")
_ARXIV_REST = r"(v\d+)?(\.pdf)?/?([?#].*)?"


def canonical(identifier: str) -> str:
    """The one way to write an identifier; versions of a paper are the paper."""
    if review := _OPEN_REVIEW.fullmatch(identifier):
        return f"openreview:{review[1]}"  # its case matters
    for form, kind in _SAME:
        rest = _ARXIV_REST if kind == "arxiv" else ""
        if found := re.fullmatch(form + rest, identifier, re.IGNORECASE):
            return f"{kind}:{found['name'].casefold()}"
    return re.sub(r"^https?://(www\.)?", "", identifier).rstrip("/")


def plain_title(title: str) -> str:
    """A title without case, spaces and signs."""
    return re.sub(r"[\W_]+", " ", title.casefold()).strip()
