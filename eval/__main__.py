"""`python -m eval`: the same as `smmd-eval`."""

from eval.cli import run

run()
