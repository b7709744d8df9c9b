"""Settings shared by all tests."""

import os
import signal

from hypothesis import HealthCheck, settings

# compilation makes first examples slow, so deadlines would test the compiler; examples are the same in every run
common = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("compiled", max_examples=30, **common)
settings.register_profile("thorough", max_examples=300, **common)
settings.register_profile("interpreted", max_examples=5, **common)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "compiled"))


def pytest_terminal_summary(terminalreporter):
    """Counts of models held against the high-precision oracle, over all processes."""
    counts: dict[str, list[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, value in getattr(report, "user_properties", ()):
                if key == "corpus" and report.when == "call":
                    family, models, wrong = value
                    total = counts.setdefault(family, [0, 0])
                    total[0] += models
                    total[1] += wrong
    if counts:
        terminalreporter.section("models against the high-precision oracle")
        for family, (models, wrong) in sorted(counts.items()):
            terminalreporter.line(f"{family:>40}: {models:6d} models, {wrong} with violations")
        terminalreporter.line(f"{'all':>40}: {sum(models for models, _ in counts.values()):6d} models")
