"""Run directories: configuration, checkpoints and logs of a run; one process writes at a time.

    config.json                           the configuration of the run; never changes
    lock                                  the process that works here
    checkpoints/000000000200.safetensors  the last few checkpoints, by step (`urbe.runs.tensors`)
    log.csv ...                           logs (`urbe.runs.row_log`)
    finished.json                         the run is done

A checkpoint stores the length and the SHA-256 of each log. A reopened run resumes from its newest checkpoint: logs are
cut to their length there, so that an interrupted run ends with the same bytes as an uninterrupted one. A log whose
bytes differ from those at the checkpoint is rejected. Runs of urbe 0.1.0, with checkpoints in folders, resume, too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.atomic import sync_folder
from urbe.runs import lock, upgrade
from urbe.runs.errors import CheckpointError
from urbe.runs.row_log import RowLog, read_rows
from urbe.runs.sealed import read_sealed, require_plain, write_sealed
from urbe.runs.tensors import SUFFIX, load_tensors, read_header, save_tensors

VERSION = 1
CONFIG, FINISHED, LOCK, CHECKPOINTS = "config.json", "finished.json", "lock", "checkpoints"
_DIGITS = 12
_STEP = re.compile(rf"[0-9]{{{_DIGITS}}}(?:{re.escape(SUFFIX)})?")
_LOG = re.compile(r"[A-Za-z0-9_-]+\.csv")
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp")


class LogPart(NamedTuple):
    """The length of a log at a checkpoint, in bytes, and its SHA-256 (None for urbe 0.1.0)."""

    length: int
    sha256: str | None


class Checkpoint(NamedTuple):
    """The state of a run at a step: arrays by name, their metadata, and the state of each log."""

    step: int
    tensors: dict[str, np.ndarray]
    about: dict[str, Any]
    logs: dict[str, LogPart]


class RunDirectory:
    """A run's folder, new or resumed, and locked until closed.

    Args:
      path: the folder; new, empty, or of the same run.
      config: the configuration of the run, as JSON values; a folder of another config is rejected.
      keep: number of newest checkpoints to keep.

    Raises:
      RunLocked: another process works there.
      CheckpointError: the folder belongs to another run, is not that of a run, or is damaged.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with RunDirectory(folder.name, {"seed": 3}) as run:
    ...     log = run.log("log.csv", ["step", "loss"])
    ...     log.append({"step": 1, "loss": 0.5})
    ...     run.save(1, {"w": np.ones(2)})
    ...     log.append({"step": 2, "loss": 0.25})  # lost: no checkpoint follows
    >>> with RunDirectory(folder.name, {"seed": 3}) as run:
    ...     log = run.log("log.csv", ["step", "loss"])
    ...     run.latest().step
    1
    >>> Path(folder.name, "log.csv").read_text()
    'step,loss\\n1,0.5\\n'
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], config: Mapping[str, Any], *, keep: int = 2) -> None:
        self.path = Path(path)
        self._keep = checks.whole_number("keep", keep, 1)
        require_plain("config", dict(config))
        self._logs: dict[str, RowLog] = {}
        _make_folder(self.path)
        self._lock: int | None = lock.acquire(self.path / LOCK)
        try:
            self._settle_config(dict(config))
            (self.path / CHECKPOINTS).mkdir(exist_ok=True)
            sync_folder(self.path)
            self._clean()
            saved = _checkpoints(self.path)
            self._parts = _log_parts(saved[max(saved)], _metadata(saved[max(saved)])) if saved else {}
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the logs and frees the lock."""
        for log in self._logs.values():
            log.close()
        if self._lock is not None:
            lock.release(self._lock)
            self._lock = None

    def log(self, name: str, columns: Sequence[str]) -> RowLog:
        """Opens a log: as it was at the newest checkpoint, or empty if it did not exist then.

        Args:
          name: name of the file.
          columns: names of the columns.

        Raises:
          CheckpointError: the file is missing or damaged.
        """
        self._require_open()
        if not _LOG.fullmatch(name):
            raise ValueError(f"name is {name!r}, expected letters, digits, '_' and '-', then '.csv'.")
        if name in self._logs:
            raise ValueError(f"name is {name!r}, which is open already; use the log that the first call returned.")
        log = self._logs[name] = RowLog(self.path / name, columns, *self._parts.get(name, (None, None)))
        return log

    def save(self, step: int, tensors: Mapping[str, np.ndarray], about: Mapping[str, Any] | None = None) -> None:
        """Saves a checkpoint, with the lengths of the logs, then deletes those no longer kept.

        If saving fails, for example on a full disk, earlier checkpoints are unchanged.

        Args:
          step: not below that of the newest checkpoint; the same step replaces it.
          tensors: see `urbe.runs.tensors.save_tensors`.
          about: see there.
        """
        self._require_open()
        steps = saved_steps(self.path)
        step = checks.whole_number("step", step, steps[-1] if steps else 0)
        if step >= 10**_DIGITS:
            raise ValueError(f"step is {step}, expected at most {_DIGITS} digits.")
        require_plain("about", dict(about or {}))
        for log in self._logs.values():
            log.sync()  # a checkpoint counts only lines that are on the disk
        parts = self._parts | {name: LogPart(log.position(), log.digest()) for name, log in self._logs.items()}
        metadata = {
            "step": step,
            "logs": {name: part.length for name, part in parts.items()},
            "sha256": {name: part.sha256 for name, part in parts.items() if part.sha256 is not None},
            "about": dict(about or {}),
        }
        save_tensors(_file(self.path, step), tensors, metadata)
        self._parts = parts
        self._rotate()

    def latest(self) -> Checkpoint | None:
        """The newest checkpoint, None before the first."""
        return read_checkpoint(self.path) if saved_steps(self.path) else None

    def finish(self, about: Mapping[str, Any] | None = None) -> None:
        """Marks the run as done after its logs are on the disk, and deletes checkpoints that are no longer kept."""
        self._require_open()
        require_plain("about", dict(about or {}))
        for log in self._logs.values():
            log.sync()
        write_sealed(self.path / FINISHED, "urbe finished run", VERSION, {"about": dict(about or {})})
        self._rotate()

    def finished(self) -> dict[str, Any] | None:
        """The argument of `finish`; None while the run is not done."""
        return read_finished(self.path)

    def _require_open(self) -> None:
        if self._lock is None:
            raise ValueError(f"The run in {self.path} is closed, expected an open one; others may work there now.")

    def _settle_config(self, config: dict[str, Any]) -> None:
        path = self.path / CONFIG
        if not os.path.lexists(path):
            write_sealed(path, "urbe run", VERSION, {"config": config})
            return
        found, expected = dict(_leaves("", read_config(self.path))), dict(_leaves("", config))
        differing = [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
        if differing:
            name = differing[0]
            also = f" (also different: {checks.listing(differing[1:])})" if len(differing) > 1 else ""
            raise CheckpointError(
                path,
                f"{name} is {found.get(name, 'not there')} in the file, expected {expected.get(name, 'nothing there')} "
                f"as given{also}. Start as this run was started, or in another folder.",
            )

    def _clean(self) -> None:
        """Deletes the remains of a crash."""
        for folder in (self.path, self.path / CHECKPOINTS):
            for name in filter(_TEMPORARY.fullmatch, os.listdir(folder)):
                with suppress(OSError):
                    os.unlink(folder / name)
        self._keep_only(set(_checkpoints(self.path).values()))

    def _rotate(self) -> None:
        saved = _checkpoints(self.path)
        self._keep_only({saved[step] for step in sorted(saved)[-self._keep :]})

    def _keep_only(self, kept: set[Path]) -> None:
        """Deletes all other checkpoints; those that cannot be deleted now are tried again next time."""
        parent = self.path / CHECKPOINTS
        for path in (parent / name for name in os.listdir(parent) if _STEP.fullmatch(name)):
            if path in kept:
                continue
            if path.is_dir():
                upgrade.delete_folder_checkpoint(path)
            else:
                with suppress(OSError):
                    os.unlink(path)


def saved_steps(path: str | os.PathLike[str]) -> list[int]:
    """The steps of a run's complete checkpoints, ascending."""
    return sorted(_checkpoints(Path(path)))


def read_checkpoint(path: str | os.PathLike[str], step: int | None = None) -> Checkpoint:
    """Reads a checkpoint of a run, by default the newest, even while another process writes there.

    Raises:
      CheckpointError: there is none, or it is damaged.
    """
    saved = _checkpoints(Path(path))
    steps = sorted(saved)
    if not steps or (step is not None and step not in steps):
        metadata = f"checkpoints of the steps {checks.listing(steps)}" if steps else "no checkpoint"
        raise CheckpointError(path, f"has {metadata}, expected {'one' if step is None else f'one of step {step}'}.")
    at = steps[-1] if step is None else step
    try:
        return read_checkpoint_file(saved[at])
    except CheckpointError as error:
        if step is None and saved_steps(path)[-1:] not in ([at], []):
            return read_checkpoint(path)  # another has taken its place meanwhile
        before = steps[steps.index(at) - 1] if steps.index(at) else None
        advice = f"Delete {saved[at]} to resume from step {before}." if before is not None else "No other is left."
        raise CheckpointError(error.path, f"{error.message} {advice}") from None


def read_checkpoint_file(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint of a run from a file.

    Raises:
      CheckpointError: it is missing, damaged, or not of a run.
    """
    path = Path(path)
    tensors, metadata = upgrade.read_folder_checkpoint(path) if path.is_dir() else load_tensors(path)
    return Checkpoint(_step(path, metadata), tensors, _dict(path, metadata, "about"), _log_parts(path, metadata))


def read_logs(path: str | os.PathLike[str], checkpoint: Checkpoint) -> dict[str, dict[str, np.ndarray]]:
    """Reads the rows of each log of a run up to a checkpoint, by name of the file and of the column.

    Raises:
      CheckpointError: a log is missing or damaged.
    """
    return {name: read_rows(Path(path) / name, *part) for name, part in checkpoint.logs.items()}


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the configuration of a run."""
    return _dict(Path(path) / CONFIG, read_sealed(Path(path) / CONFIG, "urbe run", VERSION), "config")


def read_finished(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Reads the argument of `RunDirectory.finish`; None while the run is not done."""
    file = Path(path) / FINISHED
    if not os.path.lexists(file):
        return None
    return _dict(file, read_sealed(file, "urbe finished run", VERSION), "about")


def _make_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise CheckpointError(path, "is a file, expected a run's folder. Give a new folder.")
    names = os.listdir(path) if path.is_dir() else []
    strange = sorted(name for name in names if name != LOCK and not _TEMPORARY.fullmatch(name))
    if strange and CONFIG not in names:
        raise CheckpointError(
            path, f"is not a run's folder: it has no {CONFIG} but holds {checks.listing(strange)}. Give a new folder."
        )
    path.mkdir(parents=True, exist_ok=True)
    sync_folder(path.absolute().parent)


def _file(path: Path, step: int) -> Path:
    return path / CHECKPOINTS / f"{step:0{_DIGITS}d}{SUFFIX}"


def _checkpoints(path: Path) -> dict[int, Path]:
    """Complete checkpoints by step; a file takes precedence over a folder of urbe 0.1.0."""
    parent = path / CHECKPOINTS
    names = [name for name in sorted(os.listdir(parent)) if _STEP.fullmatch(name)] if parent.is_dir() else []
    complete = [parent / name for name in names if name.endswith(SUFFIX) or upgrade.is_folder_checkpoint(parent / name)]
    return {int(each.name[:_DIGITS]): each for each in complete}


def _metadata(path: Path) -> dict[str, Any]:
    """Reads the metadata of a checkpoint, without its arrays."""
    return _dict(path, upgrade.read_folder_manifest(path), "about") if path.is_dir() else read_header(path).about


def _step(path: Path, metadata: Mapping[str, Any]) -> int:
    step = metadata.get("step")
    if not {"step", "logs", "about"} <= metadata.keys() or path.name[:_DIGITS] != f"{step:0{_DIGITS}}":
        raise CheckpointError(path, f"is not the checkpoint of step {path.name[:_DIGITS].lstrip('0') or 0} of a run.")
    return int(metadata["step"])


def _log_parts(path: Path, metadata: Mapping[str, Any]) -> dict[str, LogPart]:
    _step(path, metadata)
    lengths, digests = _dict(path, metadata, "logs"), _dict(path, metadata, "sha256") if "sha256" in metadata else {}
    for name, length in lengths.items():
        if not _LOG.fullmatch(name) or type(length) is not int or length < 0:
            raise CheckpointError(path, f"gives the log {name!r} the length {length!r}, expected bytes of a .csv.")
    return {name: LogPart(length, digests.get(name)) for name, length in lengths.items()}


def _dict(path: Path, content: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = content.get(name)
    if type(value) is not dict:
        raise CheckpointError(path, f"has no {name}, expected a dict.")
    return value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every field of a config as `network.sizes[1]`, and its value as text."""
    if type(value) is dict and value:
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}" if name else key, item)
    elif type(value) is list and value:
        for i, item in enumerate(value):
            yield from _leaves(f"{name}[{i}]", item)
    else:
        yield name, json.dumps(value)
