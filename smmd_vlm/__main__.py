"""`python -m smmd_vlm` is `smmd-vlm`."""

from smmd_vlm.cli import run

if __name__ == "__main__":
    run()
