"""The door of the command: it puts the rooms on the path, then hands over to `knockon.cli`.

In an installation the rooms lie inside this package, because names such as `shared` belong to other
distributions too; in a checkout they lie beside it and are on the path already.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Final

ROOMS: Final = Path(__file__).parent / "_app"


def main() -> None:
    """Run the command with this process's arguments; it ends the process with its exit code."""
    if ROOMS.is_dir():
        sys.path.insert(0, str(ROOMS))
    import_module("knockon.cli.app").run(sys.argv[1:])


if __name__ == "__main__":
    main()
