"""Which strings are private by how they look, and which only look a little like it."""

import json
import time

import pytest

from stretto.private_strings import replace_private, users_in
from stretto.private_strings.keys import KEYS

HEX = "0123456789abcdef" * 8
MIXED = "aB3dE6gH9jK2mN5pQ8sT" * 12
DIGITS = "1234567890" * 3
AZURE = f"{MIXED[:40]}+/{MIXED[:44]}=="

SECRETS = (
    *(f"GOCSPX-{MIXED[:28]}", f"whsec_{MIXED[:32]}", f"dop_v1_{HEX[:64]}", f"dapi{HEX[:32]}"),
    *(f"shpat_{HEX[:32]}", f"pplx-{MIXED[:48]}", f"fw_{MIXED[:24]}", f"lin_api_{MIXED[:40]}"),
    *(f"ntn_{MIXED[:46]}", f"secret_{MIXED[:43]}", f"figd_{MIXED[:40]}", f"sbp_{HEX[:40]}"),
    *(f"hvs.{MIXED[:90]}", f"dp.pt.{MIXED[:43]}", f"dckr_pat_{MIXED[:27]}", f"pcsk_{MIXED[:70]}"),
    *(f"glsa_{MIXED[:32]}_{HEX[:8]}", f"sntrys_{MIXED[:60]}", f"NRAK-{MIXED[:27].upper()}"),
    *(f"phx_{MIXED[:40]}", f"ATATT3{MIXED[:180]}", f"AGE-SECRET-KEY-1{MIXED[:58].upper()}"),
    *(f"sk_{HEX[:48]}", f"AC{HEX[:32]}", f"SK{HEX[:32]}", f"key-{HEX[:32]}"),
    *(f"{DIGITS[:10]}:AA{MIXED[:33]}", f"sk_live_{MIXED[:24]}", f"pscale_tkn_{MIXED[:43]}"),
)


def found_in(text):
    """What is replaced in a text, and the text afterwards."""
    found = []

    def name(kind, string):
        found.append((kind, string))
        return "<x>"

    return found, replace_private(text, name)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("text", ["{}", "export K={} # mine", '{{"k":"a\\n{}"}}', "({}, 1)"])
def test_a_key_is_known_by_how_it_begins(secret, text):
    text = text.format(secret)
    found, replaced = found_in(text)
    assert [string for _, string in found] == [secret]
    assert replaced == text.replace(secret, "<x>")


@pytest.mark.parametrize("prefix", KEYS)
def test_the_beginning_of_a_key_alone_is_a_word_like_others(prefix):
    text = f"keys begin with {prefix} and go on, as {prefix}name or x{prefix}{MIXED[:60]}"
    assert found_in(text) == ([], text)


ASSIGNED = {
    "password=P@ss!w0rd#9": "P@ss!w0rd#9",
    "passwd=abc12": "abc12",
    r'"password": "p\"w0rd99"': r"p\"w0rd99",
    r'{"a":"{\"password\": \"p\\\"w0rd99\"}"}': r"p\\\"w0rd99",
    '{"password":"abc1","name":"someone else"}': "abc1",
    "Server=db;Password=abc12;Pwd=": "abc12",
    "Uid=sa;Pwd=abc12;": "abc12",
    "https://h/login?password=abc12&user=x": "abc12",
    'password_hash = "$2b$12$abcdef"': "$2b$12$abcdef",
    "MYSQL_PWD=Tr0ub4dor": "Tr0ub4dor",
    "password: 123456": "123456",
    "login(password=abc12)": "abc12",
    "curl -s -u bob:iOCqT1j5 http://h": "iOCqT1j5",
    "curl --user 'bob:iOCqT1j5' http://h": "iOCqT1j5",
    "machine h login bob password s3cretPw9": "s3cretPw9",
    r"machine h\n  login bob\n  password s3cretPw9\n": "s3cretPw9",
    "https://user:p@ss:w0rd@host/x": "p@ss:w0rd",
    f"Cookie: session={MIXED[:40]}; theme=dark": f"session={MIXED[:40]}; theme=dark",
    f"Set-Cookie: sid={MIXED[:40]}; HttpOnly": f"sid={MIXED[:40]}",
    f"https://h/x?sig={MIXED[:43]}": MIXED[:43],
    f"https://maps/x?a=b&key={MIXED[:32]}": MIXED[:32],
    f"AccountName=st;AccountKey={'A' * 86}==;EndpointSuffix=x": f"{'A' * 86}==",
    f'{{"AccountKey": "{AZURE}"}}': AZURE,
    f"account_key = '{AZURE}'": AZURE,
    rf"AccountKey={MIXED[:40]}\u002B{MIXED[:45]}==;": rf"{MIXED[:40]}\u002B{MIXED[:45]}==",
    f"SharedAccessKeyName=Root;SharedAccessKey={'b' * 43}=;EntityPath=x": f"{'b' * 43}=",
    f"https://hooks.slack.com/services/T0AB/B0CD/{MIXED[:24]}": f"T0AB/B0CD/{MIXED[:24]}",
    f"https://discord.com/api/webhooks/{DIGITS[:18]}/{MIXED[:68]}": f"{DIGITS[:18]}/{MIXED[:68]}",
}


@pytest.mark.parametrize("text", ASSIGNED)
def test_a_secret_is_known_by_the_words_around_it(text):
    found, replaced = found_in(text)
    assert [string for _, string in found] == [ASSIGNED[text]]
    assert replaced == text.replace(ASSIGNED[text], "<x>")


USERS = {
    r"\\wsl$\Ubuntu\home\zorkmid\x": "zorkmid",
    r"\\wsl.localhost\Ubuntu\home\zorkmid": "zorkmid",
    r"\\srv\Users\Mary Poppins\docs": "Mary Poppins",
    r'{"p":"\\\\srv\\home$\\zorkmid\\x"}': "zorkmid",
    "//wsl$/Ubuntu/home/zorkmid/x": "zorkmid",
    "~zorkmid/x": "zorkmid",
    "http://example.org/~zorkmid/": "zorkmid",
    "%2Fhome%2Fzorkmid%2Fx": "zorkmid",
    "file%3A%2F%2F%2FUsers%2Fzorkmid": "zorkmid",
    "%2Fhome%2Fzork%20mid%2Fx": "zork%20mid",
    "/home/zork%20mid": "zork%20mid",
    "file:///home/zork%20mid.%20Next": "zork%20mid",
    "C:/Users/zork%20mid/x": "zork%20mid",
    r"\u002fhome\u002fzorkmid": "zorkmid",
    r'{"p":"\u002FUsers\u002Fzorkmid\u002Fx"}': "zorkmid",
    r"C:\u005cUsers\u005czorkmid\u005cx": "zorkmid",
    r"\\u002fhome\\u002fzorkmid\\u002fx": "zorkmid",
    "USER=zorkmid": "zorkmid",
    '{"LOGNAME": "zorkmid"}': "zorkmid",
    "SUDO_USER=zorkmid": "zorkmid",
    "It is in /home/zorkmid.": "zorkmid",
    "diff a/home/zorkmid/x": "zorkmid",
    "cc -I/home/zorkmid/include": "zorkmid",
    "docker run -v /srv/home/zorkmid:/x": "zorkmid",
    "/mnt/c/Users/zorkmid/x": "zorkmid",
    "/export/home/zorkmid": "zorkmid",
    "\x1b[35m/home/zorkmid/x": "zorkmid",
    "ssh://git@host/home/zorkmid/repo": "zorkmid",
    "C--Users-zorkmid-code": "zorkmid",
}


@pytest.mark.parametrize("text", USERS)
def test_a_user_is_known_by_the_path(text):
    found, replaced = found_in(text)
    assert found == [("user", USERS[text])]
    assert replaced == text.replace(USERS[text], "<x>")


NOTHING = (
    # Code that gets a secret from elsewhere, and types.
    'password = os.environ["DB_PASSWORD1"]',
    "password=os.environ.get('DB1')",
    "apiKey: process.env.SERVICE_API_KEY_2 ?? ''",
    'password: "${DB_PASSWORD_1}"',
    'password = ":****" or "xxxxxx"',
    "password: String!, name: String",
    "password: Optional[str] = None",
    "self.start_token_id_2 = self.config.start_token_id_2",
    "token = hashlib.sha256(data)",
    "{radio:!0,password:!0,image:!0}",
    'type="password" placeholder="Your password"',
    '{"password": "string", "token": "required", "token_type": "Bearer"}',
    "The password must have 8 letters; password: at least 12 of them",
    "TOKEN_FILE=/run/secrets/token_1",
    "PWD=/srv/app OLDPWD=/srv/app2",
    "curl -u $USER:$PASSWORD http://h",
    "Cookie: none",
    "tokens: 12,345/200,000 in 2024-01-01",
    # Hashes, ids, encoded pictures, names of versions and files.
    f"commit {HEX[:40]}",
    "9a1b2c3d-0e4f-4a5b-8c6d-7e8f9a0b1c2d",
    f"data:image/png;base64,iVBORw0KGgo{MIXED}+/{MIXED}==",
    "sk-estimator-doc-link sk-text-repr-fallback sk-folding-cube-container",
    "left-pad@1.2.3.tgz icon@2x.png @scope/name",
    # Folders and pages that no user has.
    "src/home/index.ts and ../home/page.tsx, app/(tabs)/home/main.tsx",
    "https://example.org/home/dashboard and http://localhost:3000/home/news",
    "/home and /home/ are folders; GET /users/123; ls ~/x; HEAD~2/3",
    "POSTGRES_USER=zorkmid USER=root USER=$(whoami) ~root/x",
    r"use \App\Users\Controller",
    r"src\u002fhome\u002findex.ts",
    f"AccountKey={MIXED[:8]} SharedAccessKeyName=RootManageSharedAccessKey",
)


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_looks_a_little_like_it_stays(text):
    assert found_in(text) == ([], text)


def test_names_that_are_words_are_not_looked_for_elsewhere():
    for name in ("user", "root", "admin", "claude", "ubuntu", "Dashboard", "ann", "1234"):
        assert users_in(f"/home/{name}/x") == set()
    assert users_in("/home/Zorkmid/x, /Users/annlee. src/home/elsewhere") == {"zorkmid", "annlee"}


def test_a_name_with_a_space_is_looked_for_in_all_its_forms():
    assert users_in("/home/zork%20mid/x") == {"zork%20mid", "zork mid", "zork"}
    assert users_in("%2Fhome%2Fzork%2520mid") == {"zork%2520mid", "zork mid", "zork"}


def test_what_json_makes_of_a_text_is_private_too():
    value = {"p": r"\\srv\Users\zorkmid\x", "password": 'p"w0rd99', "e": "USER=zorkmid\nx"}
    for text in (json.dumps(value), json.dumps(json.dumps(value))):
        replaced = found_in(text)[1]
        assert "zorkmid" not in replaced
        assert "w0rd" not in replaced


HARD = ("a" * 400_000 + "@", "%2F" * 100_000, '"token": "' * 40_000, "curl -u " * 40_000)
HARD += ("/home/a" + "%20a" * 100_000, "AccountKey=" * 30_000, r"\u002fhome" * 30_000)


@pytest.mark.parametrize("text", [*HARD, "\\" * 200_000 + "\\home\\", "?a." * 100_000 + "key="])
def test_no_text_takes_long(text):
    begin = time.process_time()
    found_in(text)
    assert time.process_time() - begin < 1.0
