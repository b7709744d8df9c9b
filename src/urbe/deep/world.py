"""What an agent can be trained on, and which way of training fits it."""

from __future__ import annotations

from urbe.deep.compiled_trainer import CompiledTrainer
from urbe.deep.settings import Settings
from urbe.deep.trainer import Trainer
from urbe.simulators import Schedule, Simulator, UncertaintySet

World = Simulator
Uncertain = UncertaintySet


def make_trainer(
    env: World, uncertain: Uncertain | None, settings: Settings, schedule: Schedule | None, seed: int, record_every: int
) -> Trainer:
    """The compiled loop for a simulator of ours, the host loop for a Gymnasium environment."""
    return CompiledTrainer(settings, env, uncertain, schedule, seed, record_every)
