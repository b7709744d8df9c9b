"""MuJoCo environments of Gymnasium: full states, and parameters as fields of their models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from urbe import checks
from urbe.gym.kinds import Env, innermost

_DERIVED = (
    "qacc",
    "qacc_warmstart",
    "qfrc_actuator",
    "qfrc_constraint",
    "actuator_force",
    "xpos",
    "xquat",
    "xmat",
    "xipos",
    "ximat",
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "subtree_com",
    "cinert",
    "cvel",
    "cfrc_ext",
    "sensordata",
)
"""Quantities that environments read before they step; they lag behind the state, so they are saved, not recomputed."""


class MujocoAdapter:
    """Parameters by name: `gravity` (downwards), `<body>_mass` and `<joint>_damping`, as the model names them.

    A body's inertia is scaled with its mass, and quantities that MuJoCo derives from them are computed again.
    """

    def get_state(self, env: Env) -> dict[str, np.ndarray]:
        """The variables that MuJoCo integrates, and quantities computed from them."""
        import mujoco

        model, data = innermost(env).model, innermost(env).data
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(model, kind), np.float64)
        mujoco.mj_getState(model, data, state, kind)
        return {"integrated": state, **{name: np.array(getattr(data, name)) for name in _DERIVED}}

    def set_state(self, env: Env, state: Mapping[str, np.ndarray]) -> None:
        """Restores a state, bit for bit."""
        import mujoco

        model, data = innermost(env).model, innermost(env).data
        mujoco.mj_setState(model, data, state["integrated"], mujoco.mjtState.mjSTATE_INTEGRATION)
        for name in _DERIVED:
            getattr(data, name)[...] = state[name]

    def get_params(self, env: Env) -> dict[str, float]:
        """The values in the model."""
        model = innermost(env).model
        bodies = {f"{name}_mass": float(model.body(name).mass[0]) for name in _bodies(model)}
        joints = {f"{name}_damping": float(model.joint(name).damping[0]) for name in _joints(model)}
        return {"gravity": -float(model.opt.gravity[2])} | bodies | joints

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Changes the model and derived quantities."""
        import mujoco

        model = innermost(env).model
        checks.known_names(params, tuple(self.get_params(env)), type(innermost(env)).__name__)
        numbers = {
            name: (checks.positive if name.endswith("_mass") else checks.finite_number)(name, value)
            for name, value in params.items()
        }
        for name, number in numbers.items():
            if name == "gravity":
                model.opt.gravity[2] = -number
            elif name.endswith("_mass"):
                body = model.body(name.removesuffix("_mass"))
                body.inertia[:] *= number / body.mass[0]
                body.mass[:] = number
            else:
                model.joint(name.removesuffix("_damping")).damping[:] = number
        mujoco.mj_setConst(model, mujoco.MjData(model))


def _bodies(model: Any) -> list[str]:
    """Names of the bodies that have a mass."""
    named = (model.body(i).name for i in range(1, model.nbody))
    return [name for name in named if name and model.body(name).mass[0] > 0.0]


def _joints(model: Any) -> list[str]:
    return [name for name in (model.joint(i).name for i in range(model.njnt)) if name]
