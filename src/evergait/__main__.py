"""`python -m evergait`."""

import sys

from evergait.cli import main

sys.exit(main())
