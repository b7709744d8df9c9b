"""A callback from a compiled program to the host: the program requests its next input instead of ending.

Starting a program costs more than a callback. The program runs on one of XLA's threads. Environments act on the thread
that started it, as without a callback: some environments require this, and Ctrl-C reaches that thread. The two take
turns:

    program:  learn, request(actions)         ...waits...            learn, request
    caller:   ...waits...  wait_for_request, act, reply              ...waits...

A program that gets no reply within `PATIENCE` ends, and is started again when there is one. Without this limit an
environment that computes with JAX could wait forever for the thread that the program occupies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock, get_ident
from types import TracebackType

import jax
import numpy as np
from jax.experimental import io_callback
from jaxtyping import Array, Float, Int32

from urbe.deep.loops.host.xla_call import Buffer, register

PATIENCE = 0.1
"""Seconds that a program waits for a reply."""

_LOOK_EVERY = 1.0  # seconds between checks that the program is still running
_NAME = "urbe_next_rows"
_TICKETS = count(1)
_OPEN: dict[int, CallbackSession] = {}


class CallbackSession:
    """The communication between a running program and the thread that started it; `ticket` identifies the session."""

    def __init__(self) -> None:
        self.ticket = np.int32(next(_TICKETS))
        self.timed_out = False
        self._caller = get_ident()
        self._asked: SimpleQueue[list[int]] = SimpleQueue()
        self._answers: SimpleQueue[np.ndarray | None] = SimpleQueue()
        self._lock, self._over = Lock(), False

    def __enter__(self) -> CallbackSession:
        _OPEN[int(self.ticket)] = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.reply(None)
        del _OPEN[int(self.ticket)]

    def wait_for_request(self, ended: Callable[[], bool]) -> list[int] | None:
        """Waits for the program's request; None if it has ended without one."""
        while True:
            gone = ended()
            try:
                return self._asked.get(timeout=0.0 if gone else _LOOK_EVERY)
            except Empty:
                if gone:
                    return None

    def reply(self, rows: Float[np.ndarray, "n W"] | None) -> bool:
        """Passes rows to the program, which must not change before its next request; None ends it.

        Returns:
          whether it was still waiting.
        """
        with self._lock:
            if self._over:
                return False
            self._over = rows is None
            self._answers.put(rows)
            return True

    def request(self, chosen: list[int]) -> Float[np.ndarray, "n W"] | None:
        """Called by the program: passes its actions, and waits for the next rows."""
        self._asked.put(chosen)
        # a small program may run on the caller's own thread, where no reply could come
        patience = PATIENCE if get_ident() != self._caller else 0.0
        try:
            return self._answers.get(timeout=patience)
        except Empty:
            with self._lock:
                if not self._answers.empty():
                    return self._answers.get()
                self._over = self.timed_out = True
                return None


def call_host(ticket: Int32[Array, ""], chosen: Int32[Array, " n"], width: int) -> Float[Array, "n W"]:
    """In a program: the caller's reply to the chosen actions, or zeros without a reply.

    On a CPU this calls a handler registered with XLA; elsewhere, and if XLA rejects the handler, it calls JAX's own
    `io_callback`, which gives the same results but takes longer.
    """
    rows = jax.ShapeDtypeStruct((len(chosen), width), np.float32)
    answer: Array
    if jax.default_backend() == "cpu" and _can_call():
        answer = jax.ffi.ffi_call(_NAME, rows, has_side_effect=True)(ticket, chosen)
    else:
        answer = io_callback(partial(_reply, rows.shape), rows, ticket, chosen, ordered=True)
    return answer


def _reply(shape: tuple[int, ...], ticket: Array, chosen: Array) -> Float[np.ndarray, "n W"]:
    answer = _request(int(ticket), np.asarray(chosen).tolist())
    return np.zeros(shape, np.float32) if answer is None else answer


def _write_reply(operands: list[Buffer], results: list[Buffer]) -> None:
    ticket, chosen = operands
    n, width = results[0].shape
    ctypes.memset(results[0].data, 0, 4 * n * width)  # first, so that the program never reads uninitialised memory
    answer = _request(ctypes.c_int32.from_address(ticket.data).value, (ctypes.c_int32 * n).from_address(chosen.data)[:])
    if answer is not None:
        ctypes.memmove(results[0].data, answer.ctypes.data, 4 * n * width)


def _request(ticket: int, chosen: list[int]) -> Float[np.ndarray, "n W"] | None:
    session = _OPEN.get(ticket)
    return None if session is None else session.request(chosen)


@cache
def _can_call() -> bool:
    """Registers the handler, once per process and only when needed; returns whether XLA accepted it.

    Call it after the CPU backend exists. Before that, XLA only queues the handler, and a rejected one would prevent the
    backend from starting, so that no program of this process could run.
    """
    try:
        register(_NAME, _write_reply)
    except Exception:  # XLA names the versions it supports in an error whose type has changed between releases
        return False
    return True
