"""Read programs in the PRISM language: the package `stormpy` of Storm builds the states, and DRN transfers them.

Names of actions are those in brackets, states are named by their variables, `!broken & x=1`, and labels become
`MDP.propositions`. Undefined constants must be given, `constants="N=3,p=0.9"`; of several reward models one is chosen,
`reward="cost"`. Programs can be read, but not written.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path as File
from typing import Any, NoReturn

from urbe import extras
from urbe.mdp.formats import drn
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.names import valuation
from urbe.mdp.formats.text import Path, shown
from urbe.mdp.labels import Labels
from urbe.mdp.model import MDP, fitting_labels

UNNAMED = "__NOLABEL__"
"""Storm's name of actions without a name."""


def read(path: Path, *, discount: float, constants: str | None = None, reward: str | None = None) -> MDP:
    """The model of a program; see `urbe.read_mdp`."""
    extras.need("Programs in the PRISM language", "stormpy")
    with open(path, "rb"):  # a missing file is an OSError, and all else is about content
        pass
    stormpy: Any = import_module("stormpy")
    program = _program(stormpy, path, constants)
    options = _options(stormpy, program, path, reward)
    try:
        built = stormpy.build_model(program, options=options)
    except Exception as error:  # of any kind, from C++
        raise ModelFileError(path, f"cannot be built: {shown(str(error), 300)}.") from None
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder, "model.drn")
        stormpy.io.export_to_drn(built, os.fspath(file))
        try:
            mdp = drn.read(file, discount=discount)
        except ModelFileError as error:
            raise ModelFileError(path, f"Storm's export of it cannot be read: {error.message}") from None
    names = tuple(_state_name(built.state_valuations, state) for state in range(mdp.n_states))
    named = None if mdp.labels.actions is None else tuple("-" if a == UNNAMED else a for a in mdp.labels.actions)
    states = names if len(set(names)) == len(names) else None
    return replace(mdp, labels=fitting_labels(Labels(states, named), mdp.n_states, mdp.n_actions))


def write(mdp: MDP, path: Path) -> NoReturn:  # noqa: ARG001
    """Raises, as a model cannot be written as a program."""
    raise ValueError(
        f"{os.fspath(path)} would be a program in the PRISM language, which is read and not written; expected .tra, "
        "PRISM's explicit files, or .drn."
    )


def _program(stormpy: Any, path: Path, constants: str | None) -> Any:
    """The program with its constants."""
    try:
        program = stormpy.parse_prism_program(os.fspath(path))
    except Exception as error:
        raise ModelFileError(
            path, f"is not a program in the PRISM language, as Storm reads it ({shown(str(error), 300)})."
        ) from None
    opened = [each.name for each in program.get_undefined_constants()]
    given = [part.partition("=")[0].strip() for part in (constants or "").split(",") if part.strip()]
    if missing := [name for name in opened if name not in given]:
        listed = ",".join(f"{name}=..." for name in opened)
        raise ModelFileError(path, f"leaves {', '.join(missing)} open; give constants='{listed}'.")
    if unknown := [name for name in given if name not in opened]:
        raise ModelFileError(
            path, f"leaves {', '.join(opened) or 'no constants'} open, but constants has {', '.join(unknown)}."
        )
    if not given:
        return program
    try:
        return stormpy.instantiate_constants(program, constants)[0]
    except Exception as error:
        raise ModelFileError(path, f"does not take constants={constants!r}: {shown(str(error), 300)}.") from None


def _state_name(valuations: Any, state: int) -> str:
    """The values of all variables: `!broken & x=1`."""
    return valuation(json.loads(str(valuations.to_json(state))))  # to_string has no names of variables that are true


def _options(stormpy: Any, program: Any, path: Path, reward: str | None) -> Any:
    names = [each.name for each in program.reward_models]
    listed = ", ".join(each or "those without a name" for each in names)
    if reward is not None and (not reward or reward not in names):
        raise ModelFileError(path, f"has the rewards {listed or 'none'}, but reward is {reward!r}.")
    if reward is None and len(names) > 1:
        raise ModelFileError(path, f"has the rewards {listed}; choose one, reward='{next(filter(None, names))}'.")
    if reward is None:
        options = stormpy.BuilderOptions()
        options.set_build_all_reward_models()
    else:  # Storm builds the rewards that a property asks for
        goal = "max" if program.model_type == stormpy.io.PrismModelType.MDP else ""
        options = stormpy.BuilderOptions(stormpy.parse_property(f'R{{"{reward}"}}{goal}=? [C<=1]', program), program)
    options.set_build_all_labels()
    options.set_build_choice_labels()
    options.set_build_state_valuations()
    return options
