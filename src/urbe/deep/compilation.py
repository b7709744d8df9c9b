"""Cache programs compiled by XLA on disk, which saves seconds at the next start.

JAX names each entry after a hash of the program, the versions and the flags, so a stale entry is never used. But it
does not write entries atomically, and never overwrites one: a half-written entry of a killed process would cause a
warning and a compilation every time. So entries are checked once and deleted if they are broken, and the oldest are
deleted when the cache is too large.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path

from urbe import checks

LARGEST = 500_000_000
_CHECKED = "checked"
_RECENT = 10.0  # seconds during which another process may still be writing an entry


def cache_compilation(folder: str | os.PathLike[str] | None = None, *, largest: int = LARGEST) -> Path:
    """Turns on JAX's cache of compiled programs, for this process.

    It changes JAX's settings, so it is never called on import; the command line calls it.

    Args:
      folder: the folder; None is `urbe/jax` in the user's cache directory (`XDG_CACHE_HOME`, or `~/.cache`).
      largest: bytes to keep; the oldest entries are deleted.

    Returns:
      the folder.
    """
    import jax  # imported only here, since the module is used without JAX
    from jax.experimental.compilation_cache import compilation_cache

    checks.whole_number("largest", largest, 0)
    path = default_folder() if folder is None else Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    _tidy(path, largest)
    compilation_cache.reset_cache()  # JAX decides once, at its first compilation
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return path


def default_folder() -> Path:
    """`urbe/jax` in the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")  # its specification says to ignore relative paths
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "urbe" / "jax"


def _tidy(path: Path, largest: int) -> None:
    stamp = path / _CHECKED
    looked = stamp.stat().st_mtime - _RECENT if stamp.exists() else 0.0
    stamp.touch()
    sizes = {}
    for entry in path.glob("*-cache"):
        with suppress(FileNotFoundError):  # another process may delete it, too
            about = entry.stat()
            if about.st_mtime >= looked and not _is_whole(entry):
                entry.unlink()
            else:
                sizes[entry] = about
    room = largest
    for entry, about in sorted(sizes.items(), key=lambda item: -item[1].st_mtime):
        room -= about.st_size
        if room < 0:
            entry.unlink(missing_ok=True)


def _is_whole(entry: Path) -> bool:
    """Whether a compressed entry is complete; entries in other compression formats are not checked."""
    data = entry.read_bytes()
    if data[:1] != b"\x78":  # not zlib: with zstandard installed, JAX takes that
        return len(data) > 0
    try:
        zlib.decompress(data)
    except zlib.error:
        return False
    return True
