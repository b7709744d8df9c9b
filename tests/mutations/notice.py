"""Runs models of the corpus until a claim fails: `python notice.py MODELS FAMILY ...`, against a broken copy."""

import signal
import sys

SOLVING = 60
"""Seconds for one model, after which the process is ended by a signal."""


def main() -> int:
    """Status 0 when nobody noticed."""
    from oracles import corpus

    models, families = int(sys.argv[1]), sys.argv[2:]
    for seed in range(models):
        for family in families:
            signal.alarm(SOLVING)
            try:
                found = corpus.violations(family, seed)
            except Exception as error:
                found = [repr(error)]
            if found:
                signal.alarm(0)
                print(f"caught by {family} {seed}: {found[0][:80]}")
                return 1
    signal.alarm(0)
    print(f"SURVIVED {models} models of {', '.join(families)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
