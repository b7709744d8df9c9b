"""A folder in memory, where writing is fast."""

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def memory():
    """A folder in memory where there is one: for tests of what the code asks for, not of the disk."""
    place = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=place if os.access(place, os.W_OK) else None) as folder:
        yield Path(folder)
