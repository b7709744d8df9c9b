"""Calls out of compiled programs on a CPU, by XLA's stable C interface (`xla/ffi/api/c_api.h`, version 0.3).

JAX has callbacks of its own, but a program with one is never kept in the compilation cache, and each call of it takes
sixty microseconds. What is registered here is a name to the compiler, and a call takes five.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import jax

_METADATA = 1  # the kind of extension that asks which version a handler was written for
_VERSION = (0, 3)
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Buffer(ctypes.Structure):
    """An operand, or a result to be written: `data` is where it lies."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )

    @property
    def shape(self) -> list[int]:
        """As in JAX."""
        sizes: list[int] = self.dims[: self.rank]
        return sizes


Handler = Callable[[list[Buffer], list[Buffer]], None]
"""Is given operands and results; must not raise."""


class _Buffers(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(Buffer))),
    )


class _Metadata(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("version_size", ctypes.c_size_t),
        ("version_extension", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("traits", ctypes.c_uint32),
    )


class _Extension(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    )


class _Frame(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.POINTER(_Extension)),
        ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("operands", _Buffers),
        ("results", _Buffers),
    )


_KEPT: list[Any] = []  # what is registered stays for as long as the process


def register(name: str, handler: Handler) -> None:
    """Makes `handler` what `jax.ffi.ffi_call(name, ...)` calls on a CPU, on whatever thread the program runs.

    Raises:
      Exception: XLA does not support the version of the interface that handlers here are written for. It says so at
        once if the CPU backend has been initialised, and otherwise when it is, at the first program of the process.
    """

    def called(address: int) -> None:
        frame = _Frame.from_address(address)
        if frame.extension and frame.extension.contents.kind == _METADATA:
            metadata = frame.extension.contents.metadata.contents
            metadata.major, metadata.minor = _VERSION
        else:
            handler(_listed(frame.operands), _listed(frame.results))

    function = _SIGNATURE(called)
    _KEPT.append(function)
    capsule = jax.ffi.pycapsule(function)  # type: ignore[no-untyped-call]
    jax.ffi.register_ffi_target(name, capsule, platform="cpu")


def _listed(of: _Buffers) -> list[Buffer]:
    return [of.buffers[i].contents for i in range(of.size)]
