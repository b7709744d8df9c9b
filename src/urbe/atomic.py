"""Write files atomically: neither readers nor crashes leave or see a partial file.

Each file is written under a temporary name, flushed to the disk, then renamed; renaming is atomic.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

Writer = Callable[[BinaryIO], None]


def replace_files(writers: Mapping[str | os.PathLike[str], Writer]) -> None:
    """Writes several files; all are complete on the disk before the first is renamed.

    If a writer fails, no file has changed and no temporary file remains. Files are renamed in the order of `writers`;
    each renaming is atomic, the sequence is not.

    Args:
      writers: final path of each file, and the function that writes its bytes to an open file.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for path, writer in writers.items():
            final = final_path(path)
            temporary = final.with_name(f".{final.name[:200]}.{secrets.token_hex(8)}.tmp")
            staged.append((temporary, final))
            try:
                write_new(temporary, writer)
            except OSError as error:
                if error.filename == os.fspath(temporary):
                    error.filename = os.fspath(path)
                raise
        for temporary, final in staged:
            os.replace(temporary, final)
    except BaseException:
        for temporary, _ in staged:
            with suppress(FileNotFoundError):
                temporary.unlink()
        raise
    for folder in {final.parent for _, final in staged}:
        sync_folder(folder)


def final_path(path: str | os.PathLike[str]) -> Path:
    """Returns the place where a file will be; a link keeps pointing at the file.

    Raises:
      OSError: it is a folder, a device or a pipe, or its folder does not exist.
    """
    final = Path(os.path.realpath(path))
    if final.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory, expected a file name", str(path))
    if os.path.exists(path) and not os.path.isfile(path):  # renaming would put a file in place of the device
        raise FileExistsError(errno.EEXIST, "Is a device, pipe or socket, expected a file name", str(path))
    if not final.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory to write into", str(final.parent))
    return final


def write_new(path: str | os.PathLike[str], writer: Writer) -> None:
    """Writes a new file, and returns when it is on the disk; if writing fails, a partial file remains."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        writer(file)
        file.flush()
        os.fsync(file.fileno())


def text_writer(parts: Iterable[str]) -> Writer:
    """Returns a writer of UTF-8 text; `parts` may be generated while they are written."""

    def write(file: BinaryIO) -> None:
        for part in parts:
            file.write(part.encode())

    return write


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flushes the names in a folder to the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened, and renaming is durable enough
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
