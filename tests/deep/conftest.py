"""Shapes and types that annotations promise are checked while these tests run."""

from jaxtyping import install_import_hook

# before anything imports them; the others have no arrays, or protocols that cannot be asked about at run time
ARRAYS = (
    "adam", "episodes", "explore", "gram", "head", "learner", "loss", "meters",
    "natures", "networks", "policy", "replay", "targets", "trouble",
)  # fmt: skip
install_import_hook([f"urbe.deep.{name}" for name in ARRAYS], "beartype.beartype")
