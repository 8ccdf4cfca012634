"""The door of the command. It loads next to nothing, so that Ctrl-C finds it open from the very start."""

import sys
from importlib import import_module

INTERRUPTED = 130


def main() -> None:
    """Run the command with this process's arguments; it ends the process with its exit code."""
    try:
        import_module("knockon.entering").enter()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
