"""Processes and threads that work through jobs, and end with whoever started them."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from queue import Empty, SimpleQueue
from signal import SIG_IGN, SIGINT, SIGTERM, signal
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

from stretto.errors import StrettoError

Job = TypeVar("Job")
Result = TypeVar("Result")

PATIENCE = 3.0
"""Seconds that threads have to come to an end; longer calls are left behind."""


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
    futures = [pool.submit(partial(_done, work), job) for job in jobs]
    given: set[Future[Result]] = set()
    try:
        for future in as_completed(futures):
            given.add(future)
            yield future.result()
    except BrokenProcessPool:
        yield from (each.result() for each in futures if each not in given and _good(each))
        hint = "the same command goes on where it stopped; fewer --workers take less memory"
        raise StrettoError("a worker process died", "bench run", hint) from None
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def in_threads(
    work: Callable[[Job], Result], jobs: Sequence[Job], threads: int, stop: Event
) -> Iterator[Result]:
    """The result of every job, as each is done, in so many threads.

    When the caller stops early, with ^C or otherwise, `stop` is set and no further job begins. Jobs
    under way should look at it; those that take longer than `PATIENCE` end with the process. Raises
    what a job raised.
    """
    todo: SimpleQueue[Job] = SimpleQueue()
    done: SimpleQueue[tuple[Result] | BaseException] = SimpleQueue()
    for job in jobs:
        todo.put(job)
    pool = [
        Thread(target=_serve, args=(work, todo, done, stop), daemon=True)
        for _ in range(min(threads, len(jobs)))
    ]
    try:
        for thread in pool:
            thread.start()
        for _ in jobs:
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            yield found[0]
    finally:
        stop.set()
        until = monotonic() + PATIENCE
        for thread in pool:
            thread.join(max(0.0, until - monotonic()))


def _serve(
    work: Callable[[Any], Any], todo: SimpleQueue[Any], done: SimpleQueue[Any], stop: Event
) -> None:
    while not stop.is_set():
        try:
            job = todo.get_nowait()
        except Empty:
            return
        try:
            done.put((work(job),))
        except BaseException as error:
            done.put(error)


def _good(future: "Future[Any]") -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


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
