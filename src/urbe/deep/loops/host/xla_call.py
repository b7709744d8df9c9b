"""Call Python from compiled programs on a CPU, by XLA's stable C interface (`xla/ffi/api/c_api.h`, version 0.3).

JAX has callbacks of its own, but programs with them are never stored in the compilation cache, and each call takes
sixty microseconds. A handler registered here is only a name to the compiler, and a call takes five.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import jax

_METADATA = 1  # the extension that requests the handler's version
_VERSION = (0, 3)
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Buffer(ctypes.Structure):
    """An operand, or a result to be written, at the address `data`."""

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
        """The lengths of the dimensions."""
        sizes: list[int] = self.dims[: self.rank]
        return sizes


Handler = Callable[[list[Buffer], list[Buffer]], None]
"""A function of operands and results; it must not raise."""


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


_KEPT: list[Any] = []  # handlers stay registered until the process ends


def register(name: str, handler: Handler) -> None:
    """Registers `handler` for `jax.ffi.ffi_call(name, ...)` on a CPU; it runs on the thread of the program.

    Raises:
      Exception: XLA does not support the handlers' version of the interface. It is raised at once if the CPU backend
        exists, otherwise at the first program of the process.
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
    capsule = jax.ffi.pycapsule(function)
    jax.ffi.register_ffi_target(name, capsule, platform="cpu")


def _listed(of: _Buffers) -> list[Buffer]:
    return [of.buffers[i].contents for i in range(of.size)]
