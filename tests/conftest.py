"""Settings shared by all tests."""

import os

from hypothesis import HealthCheck, settings

# compilation makes first examples slow, so deadlines would test the compiler; examples are the same in every run
common = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("compiled", max_examples=30, **common)
settings.register_profile("thorough", max_examples=300, **common)
settings.register_profile("interpreted", max_examples=5, **common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "compiled"))
