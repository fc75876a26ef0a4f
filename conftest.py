"""Examples in the documentation run as tests."""

import os

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()], patterns=["*.md"], excludes=["CHANGELOG.md"]
).pytest()

# As the command line does: several workers share the processor.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
