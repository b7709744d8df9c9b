"""Callbacks to the host: requests and replies, programs without replies, and runs that do not depend on timing."""

import os
import signal
import subprocess
import sys
import time
from threading import get_ident

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.deep.loops.test_host import learned, trainer_on

from urbe.deep.loops.host import callback, xla_call
from urbe.deep.loops.host.callback import CallbackSession, call_host
from urbe.deep.loops.host.program import make_feed

WORK = 200  # rows of a product that keeps a program off the caller's thread


def program(rows, ticket):
    """Starts a program that adds up the rows it is given and says how many there were."""

    def run(rows, ticket):
        def one(carry):
            rows, total, n = carry
            heavy = jnp.ones((WORK, WORK)) @ jnp.full((WORK, WORK), n, jnp.float32)
            expected = n + 1 + (0.0 * heavy.sum()).astype(jnp.int32)
            return call_host(ticket, expected[None], 3), total + rows, n + 1

        start = (rows, jnp.zeros((1, 3), jnp.float32), jnp.int32(0))
        return jax.lax.while_loop(lambda carry: carry[0][0, 0] > 0.0, one, start)[1:]

    return jax.jit(run)(rows, ticket)


def row(*numbers):
    return np.array([numbers], np.float32)


def test_what_is_said_arrives():
    with CallbackSession() as session:
        total, n = program(row(1, 10, 100), session.ticket)
        for k in range(1, 50):
            assert session.wait_for_request(total.is_ready) == [k]
            assert session.reply(row(1, k, -k))
        assert session.wait_for_request(total.is_ready) == [50]
    np.testing.assert_array_equal(total, row(50, 10 + 49 * 25, 100 - 49 * 25))
    assert int(n) == 50
    assert not session.timed_out


def test_silence_ends_a_program(monkeypatch):
    monkeypatch.setattr(callback, "PATIENCE", 0.01)
    with CallbackSession() as session:
        total, _ = program(row(1, 2, 3), session.ticket)
        assert session.wait_for_request(total.is_ready) == [1]
        jax.block_until_ready(total)
        assert session.timed_out
        assert not session.reply(row(1, 4, 5))
        assert session.wait_for_request(total.is_ready) is None
    np.testing.assert_array_equal(total, row(1, 2, 3))


def test_a_program_on_the_callers_own_thread_does_not_wait_for_it():
    with CallbackSession() as session:
        assert session.request([7]) is None
        assert session.timed_out
        assert session.wait_for_request(lambda: True) == [7]
        assert not session.reply(row(1, 1, 1))


def test_nobody_is_there_any_more():
    with CallbackSession() as session:
        pass
    total, n = program(row(1, 2, 3), session.ticket)
    np.testing.assert_array_equal(total, row(1, 2, 3))
    assert int(n) == 1


class Watched(gymnasium.Wrapper):
    """Does something before some steps; knows on which threads it acted."""

    def __init__(self, env, before):
        super().__init__(env)
        self.before, self.count, self.threads = before, 0, set()

    def step(self, action):
        self.count += 1
        self.threads.add(get_ident())
        self.before(self.count)
        return super().step(action)


def run_of(before, steps=120):
    """A trainer whose environment was disturbed, having gone on after every exception."""
    env = Watched(gymnasium.make("CartPole-v1"), before)
    trainer, raised = trainer_on(env), []
    while trainer.step < steps:
        try:
            trainer.advance(steps - trainer.step)
        except (RuntimeError, KeyboardInterrupt) as error:
            raised.append(error)
    assert env.threads == {get_ident()}
    return learned(trainer), raised


@pytest.fixture(scope="module")
def undisturbed():
    return run_of(lambda _: None)[0]


def test_an_exception_comes_through_and_nothing_is_lost(undisturbed):
    def fail(step):
        if step in (1, 30, 31, 77):
            raise RuntimeError(f"broke at {step}")

    bits, raised = run_of(fail)
    assert [str(error) for error in raised] == ["broke at 1", "broke at 30", "broke at 31", "broke at 77"]
    assert bits == undisturbed


def test_an_interrupt_comes_through_and_nothing_is_lost(undisturbed):
    bits, raised = run_of(lambda step: os.kill(os.getpid(), signal.SIGINT) if step in (5, 60) else None)
    assert [type(error) for error in raised] == [KeyboardInterrupt] * 2
    assert bits == undisturbed


def test_an_interrupt_while_the_program_learns(undisturbed, monkeypatch):
    heard, listen = [0], CallbackSession.wait_for_request

    def interrupted(self, ended):
        heard[0] += 1
        if heard[0] in (20, 90):
            raise KeyboardInterrupt
        return listen(self, ended)

    monkeypatch.setattr(CallbackSession, "wait_for_request", interrupted)
    bits, raised = run_of(lambda _: None)
    assert len(raised) == 2
    assert bits == undisturbed


def test_a_program_that_falls_silent_is_noticed(monkeypatch):
    trainer = trainer_on(gymnasium.make("CartPole-v1"))
    trainer.advance(10)
    monkeypatch.setattr(callback, "_request", lambda *_: None)
    with pytest.raises(RuntimeError, match="without a request"):
        trainer.advance(10)


def test_slow_environments_learn_the_same(undisturbed, monkeypatch):
    monkeypatch.setattr(callback, "PATIENCE", 0.01)
    bits, _ = run_of(lambda step: time.sleep(0.05 if step in (3, 50, 51) else 0.0))
    assert bits == undisturbed


def test_callbacks_of_jaxs_own_serve_where_ours_do_not(undisturbed, monkeypatch):
    make_feed.cache_clear()
    monkeypatch.setattr(jax, "default_backend", lambda: "elsewhere")
    monkeypatch.setattr(jax.ffi, "ffi_call", None)
    bits, _ = run_of(lambda _: None)
    make_feed.cache_clear()
    assert bits == undisturbed


@pytest.fixture
def unregistered():
    """As in a process where no host loop has run yet."""
    make_feed.cache_clear()
    callback._can_call.cache_clear()
    yield
    make_feed.cache_clear()
    callback._can_call.cache_clear()


@pytest.mark.usefixtures("unregistered")
def test_a_handler_that_cannot_be_registered_is_done_without(undisturbed, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("another interface")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", refuse)
    monkeypatch.setattr(jax.ffi, "ffi_call", None)
    assert run_of(lambda _: None)[0] == undisturbed


@pytest.mark.usefixtures("unregistered")
def test_xla_refuses_another_interface_at_once_and_goes_on_working(undisturbed, monkeypatch):
    monkeypatch.setattr(callback, "_NAME", "urbe_of_another_interface")
    monkeypatch.setattr(xla_call, "_VERSION", (9, 0))
    assert run_of(lambda _: None)[0] == undisturbed
    assert not callback._can_call()
    assert float(jax.jit(lambda x: x + 1.0)(2.0)) == 3.0


@pytest.mark.usefixtures("unregistered")
def test_a_process_registers_once(monkeypatch):
    names, register = [], xla_call.register
    monkeypatch.setattr(callback, "register", lambda name, handler: (names.append(name), register(name, handler)))
    monkeypatch.setattr(callback, "_NAME", "urbe_registered_once")
    for _ in range(2):
        trainer_on(gymnasium.make("CartPole-v1")).advance(3)
        make_feed.cache_clear()
    assert names == ["urbe_registered_once"]


def test_an_environment_that_needs_the_programs_thread_gets_it():
    """With one thread for all of JAX, its computations wait for a program that waits for it."""
    code = (
        "import gymnasium, time, jax, jax.numpy as jnp\n"
        "from urbe.deep import dqn\n"
        "from urbe.deep.settings import Settings\n"
        "class Busy(gymnasium.Wrapper):\n"
        "    def step(self, action):\n"
        "        float(product(jnp.ones((300, 300))).sum())\n"
        "        return self.env.step(action)\n"
        "product = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, y: jnp.tanh(y @ x), x))\n"
        "agent = dqn(Busy(gymnasium.make('CartPole-v1')), seed=0, settings=Settings(warm_up=8, batch=8))\n"
        "agent.learn(300)\n"
        "assert agent.trainer.step == 300\n"
        "assert agent.trainer._restart_until > 0\n"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "NPROC": "1"}, check=True, timeout=600)


def test_another_start_finds_the_program_compiled(tmp_path):
    """Unlike programs with callbacks of JAX's own."""
    code = (
        "import gymnasium\n"
        "from urbe.deep import dqn\n"
        "from urbe.deep.settings import Settings\n"
        "from urbe.deep.compilation import cache_compilation; cache_compilation()\n"
        "dqn(gymnasium.make('CartPole-v1'), seed=0, settings=Settings(warm_up=8, batch=8)).learn(20)\n"
    )
    found = []
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}, check=True, timeout=600
        )
        found.append(sorted(path.name for path in tmp_path.rglob("jit_feed-*-cache")))
    assert len(found[0]) == 1
    assert found[1] == found[0]
