"""MLflow's own attributes of a span, given the names that OpenInference has for them.

Each value is JSON (`mlflow.entities.span` and `mlflow.tracing.constant.SpanAttributeKey`).
"""

from typing import Any

import msgspec

from stretto.importers.kit.fields import known, value_at
from stretto.importers.spans.genai import OPERATION
from stretto.importers.spans.messages import json_text
from stretto.importers.spans.openinference import KIND

TYPE = "mlflow.spanType"
_KINDS = {"CHAT_MODEL": "LLM"}
"""Types that OpenInference calls otherwise."""
_INPUT, _OUTPUT, _MODEL = "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.llm.model"
_USAGE, _COST = "mlflow.chat.tokenUsage", "mlflow.llm.cost"
_OWN = (TYPE, _INPUT, _OUTPUT, _MODEL, _USAGE, _COST)
_COUNTS = {
    "prompt": "input_tokens",
    "completion": "output_tokens",
    "prompt_details.cache_read": "cache_read_input_tokens",
    "prompt_details.cache_write": "cache_creation_input_tokens",
}


def with_plain_names(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes of which none is MLflow's own, unless another convention gives their meaning."""
    if TYPE not in attributes or OPERATION in attributes or KIND in attributes:
        return attributes
    said = {name: _value(attributes.get(name)) for name in _OWN}
    kind, usage = said[TYPE], said[_USAGE]
    counts = {f"llm.token_count.{name}": value_at(usage, key) for name, key in _COUNTS.items()}
    named = {
        KIND: _KINDS.get(kind, kind) if isinstance(kind, str) else None,
        "input.value": json_text(said[_INPUT]),
        "output.value": json_text(said[_OUTPUT]),
        "llm.model_name": said[_MODEL],
        "llm.cost.total": value_at(said[_COST], "total_cost"),
    }
    rest = {name: value for name, value in attributes.items() if name not in _OWN}
    return rest | known(**named, **counts)


def _value(value: Any) -> Any:
    """What a text of JSON says; a text that is none, as it is."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return value
