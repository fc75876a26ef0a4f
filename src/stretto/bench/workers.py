"""Processes that work through jobs, and end with whoever started them."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from signal import SIG_IGN, SIGINT, SIGTERM, signal
from threading import Thread
from typing import Any, TypeVar

from stretto.errors import StrettoError

Job = TypeVar("Job")
Result = TypeVar("Result")


def done_by(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """The result of every job, as each is done; with one worker in this process, in order.

    `work` and the jobs are pickled. When the caller stops early, with ^C or otherwise, jobs under
    way are given up. Raises `StrettoError` when a process dies.
    """
    if workers <= 1:
        yield from map(work, jobs)
        return
    others = set(active_children())
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)) or 1, get_context("spawn"), initializer=_begin
    )
    try:
        futures = [pool.submit(partial(_done, work), job) for job in jobs]
        yield from (future.result() for future in as_completed(futures))
    except BrokenProcessPool:
        hint = "the same command goes on where it stopped; fewer --workers take less memory"
        raise StrettoError("a worker process died", "bench run", hint) from None
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Prepare a worker: one thread, so that workers share the cores and sums have one order."""
    os.environ["OMP_NUM_THREADS"] = "1"
    signal(SIGINT, SIG_IGN)  # ^C is for the parent, which then terminates this process
    signal(SIGTERM, _leave)
    Thread(target=_outlive_nobody, daemon=True).start()


def _leave(_signal: int, _frame: object) -> None:
    """End as an exception does, which cleans up behind a job."""
    sys.exit(1)


def _outlive_nobody() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _done(work: Callable[[Any], Any], job: Any) -> Any:
    try:
        return work(job)
    except SystemExit:  # the pool would take it for the job's result, and send the next one
        os._exit(1)
