"""The entry point of the commands `smp` and `git-smp`."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from smp_git.cli.program import app

    app()


if __name__ == "__main__":
    main()
