"""`python -m physkit`: the command line."""

import sys

from physkit.cli import main

sys.exit(main())
