"""The entry point of the commands `smp` and `git-smp`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from smp_git.cli.main import run

        run(sys.argv[1:])
    except KeyboardInterrupt:
        # While a command runs typer says so; this is before it, and while modules load.
        sys.stderr.write("smp: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
