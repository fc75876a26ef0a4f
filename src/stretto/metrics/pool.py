"""One task for many items in several processes, of which some may die."""

import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

from stretto.errors import SourceWarning, StrettoError

Item = TypeVar("Item")
Result = TypeVar("Result")

IN_FLIGHT = 4
"""Items a worker that are handed out ahead: so that a folder never stands in memory."""


def run_each(
    task: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[int, Result | None]]:
    """The place and the result of every item, in the order in which they end.

    When a process dies (killed, out of memory), what was under way is done again, one by one; an
    item on which a process dies that has nothing else to do comes back as `None`.

    Raises `StrettoError` where no process lives.
    """
    if workers <= 1 or len(items) <= 1:
        yield from ((index, task(item)) for index, item in enumerate(items))
        return
    waiting, done = iter(enumerate(items)), 0
    open_: dict[int, Item] = {}
    while True:
        for each in _together(task, waiting, workers, open_):
            done += 1
            yield each
        if not open_:
            return
        dead: list[int] = []
        for index, result in _one_by_one(task, open_):
            if result is None:
                dead.append(index)
            else:
                done += 1
                yield index, result
        if not done:
            hint = 'use one worker; a script starts its work under if __name__ == "__main__"'
            raise StrettoError("every process died at its work", hint=hint)
        yield from ((index, None) for index in dead)


def _together(
    task: Callable[[Item], Result],
    waiting: Iterator[tuple[int, Item]],
    workers: int,
    open_: dict[int, Item],
) -> Iterator[tuple[int, Result]]:
    """Results until all are done or a process dies; `open_` then holds what was begun."""
    running: dict[Future[Result], int] = {}

    def start(most: int) -> None:
        for index, item in islice(waiting, most):
            open_[index] = item
            running[pool.submit(task, item)] = index

    with _pool(workers) as pool:
        try:
            with _interrupts_for_us_only():
                start(workers * IN_FLIGHT)
            while running:
                ended = next(as_completed(running))
                index, result = running.pop(ended), ended.result()
                del open_[index]
                yield index, result
                start(1)
        except BrokenProcessPool:
            return


def _one_by_one(
    task: Callable[[Item], Result], open_: dict[int, Item]
) -> Iterator[tuple[int, Result | None]]:
    """Results of all that is open; `None` for an item on which its process dies."""
    while open_:
        index = next(iter(open_))
        with _pool(1) as pool:
            try:
                while open_:
                    index = next(iter(open_))
                    with _interrupts_for_us_only():
                        future = pool.submit(task, open_[index])
                    result = future.result()
                    del open_[index]
                    yield index, result
            except BrokenProcessPool:
                del open_[index]
                yield index, None


@contextmanager
def _pool(workers: int) -> Generator[ProcessPoolExecutor]:
    """Processes that end at once where this one dies, is interrupted, or wants no more of them."""
    context = get_context("spawn")
    lifeline: Any
    lifeline, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin, initargs=(lifeline,)
    )
    try:
        yield pool
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()
        lifeline.close()


def _begin(lifeline: Any) -> None:
    """Say nothing of the files that are read: the first process does; and end with it."""
    warnings.simplefilter("ignore", SourceWarning)
    Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Any) -> None:
    """End in the midst of work when the other end of a pipe, on which nothing comes, is closed."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)


@contextmanager
def _interrupts_for_us_only() -> Generator[None]:
    """Let the processes that start meanwhile ignore ^C: this one ends them."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
