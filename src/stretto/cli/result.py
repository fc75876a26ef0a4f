"""The end of a run, for people: what was learned beside what could have been."""

from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.cli.arguments import console, number


def comparison(result: dict[str, Any], folder: Path) -> None:
    """Print learned policy, optimum and baselines side by side, and where the run is."""
    out = console()
    if result["optimum"] is None:
        mean, low, high = (number(result.get(key), 4) for key in ("mean", "low", "high"))
        out.print(f"mean reward {mean} (95 % interval {low} to {high})")
    else:
        out.print(_table(result))
    tokens = f"{result['tokens_generated']:,} generated, {result['tokens_trained']:,} trained"
    out.print(f"{result['steps']} steps in {number(result['seconds'], 1)} s; tokens: {tokens}")
    for warning in result.get("warnings", ()):
        out.print(f"warning: {warning}", markup=False)
    out.print(f"run folder: {folder}", markup=False)


def _table(result: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("policy")
    table.add_column("exact value", justify="right")
    table.add_column("of the optimum", justify="right")
    learned = result["policy"].get("model", result["policy"]["kind"])
    rows = {f"learned ({learned})": result["value"], "optimum": result["optimum"]}
    rows |= {name.replace("_", " "): value for name, value in result["baselines"].items()}
    for name, value in rows.items():
        style = "bold" if name.startswith("learned") else ""
        share = f"{100 * value / result['optimum']:.1f} %"
        table.add_row(name, number(value, 4), share, style=style)
    return table
