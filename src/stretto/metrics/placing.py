"""When an event without a time may have begun, so that no chain through it counts time twice."""

import numpy as np

from stretto.columns import Floats, Ints, Parents


def placed(order: Ints, parents: Parents, begin: Floats, weight: Floats) -> Floats:
    """Begins, with those that are unknown put where causes and effects leave room.

    An event without a time begins when its causes have ended, yet no later than the first of its
    effects; NaN where no time before it is known.

    Args:
        order: Rows so that every cause stands before its effects.
        parents: The causes of every event.
        begin: Seconds at which every event begins; NaN where unknown.
        weight: Seconds that every event takes.
    """
    lost = np.isnan(begin)
    if not lost.any() or lost.all():
        return begin
    rows: list[int] = order[lost[order]].tolist()
    latest = _latest(rows, parents, np.where(lost, np.inf, begin))
    earliest: list[float] = np.where(lost, -np.inf, begin).tolist()
    seconds: list[float] = weight.tolist()
    offsets, source = parents.offsets.tolist(), parents.source.tolist()
    for row in rows:
        causes = source[offsets[row] : offsets[row + 1]]
        ended = max((earliest[cause] + seconds[cause] for cause in causes), default=-np.inf)
        earliest[row] = min(ended, latest[row])
    found = np.array(earliest)
    found[np.isinf(found)] = np.nan
    return found


def _latest(rows: list[int], parents: Parents, begin: Floats) -> list[float]:
    """The begin of the first effect of every one of `rows`, through others of them."""
    latest: list[float] = begin.tolist()
    offsets, target = parents.effects.offsets.tolist(), parents.effects.target.tolist()
    for row in reversed(rows):
        effects = target[offsets[row] : offsets[row + 1]]
        latest[row] = min((latest[effect] for effect in effects), default=np.inf)
    return latest
