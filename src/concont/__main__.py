"""`python -m concont` is the same as `concont`."""

from concont.cli import main

main()
