"""What all formats of tracing spans share: a model of spans, and how a team is found in them.

| module | what it does |
|---|---|
| `span` | the one form that every format is brought into |
| `records` | spans with attributes, before a convention gives them a meaning |
| `messages` | chat messages in the dialects that spans carry |
| `conventions`, `genai`, `openinference`, `mlflow` | attributes to meaning |
| `autogen`, `langgraph` | attributes of two frameworks to meaning |
| `orphans` | spans whose parent is not there |
| `runs` | which spans are one run |
| `unrecorded` | tool calls that only messages tell of |
| `team` | which agent did what |
| `acts`, `weave` | events and edges |
| `importing` | files to traces and reports |
"""
