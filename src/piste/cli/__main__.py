"""``python -m piste.cli``."""

from piste.cli import main

main()
