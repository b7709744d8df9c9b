"""Importing only defines names."""

import os
import subprocess
import sys

CODE = """
import importlib, pkgutil
import jax
from jax._src import xla_bridge
from jaxlib import xla_client

def refuse(*args, **named):
    raise AssertionError(f"registered with XLA: {args[0]}")

jax.ffi.register_ffi_target = xla_client.register_custom_call_target = refuse
before = dict(jax.config.values)
import urbe
names = [each.name for each in pkgutil.walk_packages(urbe.__path__, "urbe.")]
assert "urbe.deep.loops.host.callback" in names and len(names) > 100
for name in names:
    importlib.import_module(name)
    assert not xla_bridge.backends_are_initialized(), f"{name} has started a backend of JAX"
assert dict(jax.config.values) == before
"""


def test_importing_every_module_registers_nothing_and_starts_nothing():
    subprocess.run([sys.executable, "-c", CODE], env=os.environ, check=True, timeout=600)
