"""What XLA has compiled, kept on the disk between processes: a second start takes seconds less.

JAX names each entry after a hash of the program, the versions and the flags, so a stale one is never taken for another.
It does not write them atomically, though, and never writes over one that is there: an entry that a killed process left
half-written would be tried, complained about and compiled again forever. So entries are looked at once and deleted when
they are broken, and the oldest go when there is too much of them.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path

from urbe import checks

LARGEST = 500_000_000
_CHECKED = "checked"
_RECENT = 10.0  # seconds for which an entry may still be being written when another process looks


def cache_compilation(folder: str | os.PathLike[str] | None = None, *, largest: int = LARGEST) -> Path:
    """Turns on JAX's cache of compiled programs, for this process.

    It changes JAX's settings, so it is never called on import; the command line calls it.

    Args:
      folder: where; None is `urbe/jax` in the user's cache directory (`XDG_CACHE_HOME`, or `~/.cache`).
      largest: bytes to keep; the oldest entries beyond are deleted.

    Returns:
      the folder.
    """
    import jax  # only who calls this needs it
    from jax.experimental.compilation_cache import compilation_cache

    checks.whole_number("largest", largest, 0)
    path = default_folder() if folder is None else Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    _tidy(path, largest)
    compilation_cache.reset_cache()  # JAX decides once, at its first compilation
    jax.config.update("jax_compilation_cache_dir", str(path))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)  # type: ignore[no-untyped-call]
    return path


def default_folder() -> Path:
    """`urbe/jax` in the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")  # relative ones are to be ignored, says its specification
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "urbe" / "jax"


def _tidy(path: Path, largest: int) -> None:
    stamp = path / _CHECKED
    looked = stamp.stat().st_mtime - _RECENT if stamp.exists() else 0.0
    stamp.touch()
    sizes = {}
    for entry in path.glob("*-cache"):
        with suppress(FileNotFoundError):  # another process tidies too
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
    """Whether a compressed entry ends where it should; one that is compressed in another way is given the benefit."""
    data = entry.read_bytes()
    if data[:1] != b"\x78":  # not zlib: with zstandard installed, JAX takes that
        return len(data) > 0
    try:
        zlib.decompress(data)
    except zlib.error:
        return False
    return True
