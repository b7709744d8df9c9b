"""Checks the annotated shapes and types while these tests run."""

from jaxtyping import install_import_hook

import fixtures.array_types  # noqa: F401

# before anything imports them; the others have no arrays, or protocols that cannot be asked about at run time
ARRAYS = (
    "core.explore", "core.finite", "core.gram", "core.gru", "core.last_layer", "core.learner", "core.loss",
    "core.minimum", "core.natures", "core.networks", "core.optimisers", "core.recurrent", "core.replay",
    "core.schedules", "core.sequences", "core.targets", "core.tricks", "loops.member_returns",
    "loops.meters", "policy",
)  # fmt: skip
install_import_hook([f"urbe.deep.{name}" for name in ARRAYS], "fixtures.array_types.checked")
