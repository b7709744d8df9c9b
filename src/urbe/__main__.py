"""Run the command line by `python -m urbe`."""

import sys

from urbe.cli import main

sys.exit(main())
