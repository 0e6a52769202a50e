"""The entry point of the commands `smp` and `git-smp`."""

from __future__ import annotations

import atexit
import gc
import sys

# What is loaded at the start stays: looking through it again and again is 2 % of `smp add`.
_OBJECTS_BEFORE_A_LOOK = 50_000


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_OBJECTS_BEFORE_A_LOOK)
    # Nor is it looked through at the end: that is 7 % of a hook.
    atexit.register(gc.freeze)
    try:
        from smp_git.cli.main import run

        run(sys.argv[1:])
    except KeyboardInterrupt:
        # While a command runs typer says so; this is before it, and while modules load.
        sys.stderr.write("smp: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
