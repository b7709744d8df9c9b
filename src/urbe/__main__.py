"""`python -m urbe` runs the command `urbe`."""

import sys

from urbe.cli import main

if __name__ == "__main__":
    sys.exit(main())
