"""The entry point of the commands `smp` and `git-smp`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    from smp_git.cli.start import run

    run(sys.argv[1:])


if __name__ == "__main__":
    main()
