"""The rules of style that no other tool checks. `python tools/check_style.py [ROOT]` lists what breaks one.

Tests are exempt where a rule is about the product only; the tables below say from which.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODULE_LINES: Final = 300
FUNCTION_LINES: Final = 40
PARAMETERS: Final = 5
NESTING: Final = 3
METHODS: Final = 12

TEXT_SUFFIXES: Final = frozenset(
    {".py", ".md", ".toml", ".yaml", ".yml", ".jsonl", ".lock", ".ini", ".mako", ""}
)
SKIPPED_FOLDERS: Final = frozenset({"build", "dist", "node_modules", "results", "vectors"})
EMPTY_NAMES: Final = frozenset(
    "manager managers helper helpers util utils common misc base data info".split()  # noqa: SIM905
)
CLOCK_READS: Final = frozenset(
    "datetime.now datetime.utcnow datetime.today date.today time.time time.time_ns time.monotonic "  # noqa: SIM905
    "time.monotonic_ns time.perf_counter".split()
)
UNSAFE_LOADERS: Final = frozenset({"pickle", "cPickle", "dill", "shelve", "marshal"})
LOG_METHODS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
LOGGERS: Final = frozenset({"log", "logger"})

CLOCK: Final = "shared/time/clock.py"
CLIENT_DOOR: Final = "knockon/__init__.py"  # beside its docstring it loads the client when asked for it
SQL_HOMES: Final = ("shared/db/", "migrations/")
CATCHES_ALL: Final = {
    "pipeline/perform.py": "around one action",
    "pipeline/crew.py": "the loop of a run's thread",
    "pipeline/rounds.py": "the loop of runs that are driven as a set",
    "api/requests.py": "the API's error handler",
    "api/log_feed.py": "the loop that reads the log for all who follow it",
    "matcher/service.py": "the process's loop",
    "timers/alerting.py": "the loop that tells people",
    "timers/service.py": "the process's loop",
    "shared/plugins.py": "around what a plug-in does when it is loaded or checked",
    "watchdog/service.py": "the process's loop",
    "worker/run_worker.py": "the process's loop",
    "worker/scheduler.py": "the process's loop",
}

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SQL: Final = re.compile(
    r"^\s*(SELECT\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|WITH\s+\w+\s+AS\s|CREATE\s+TABLE\s)"
)
_UNFINISHED: Final = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")
_MACHINE_PATH: Final = re.compile(r"(?<![\w./])/(?:tmp/|work\b|root\b)")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Block = ast.If | ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try | ast.Match


@dataclass(frozen=True, slots=True, order=True)
class Breach:
    """One place that breaks a rule; the path is relative to the root."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def check_tree(root: Path) -> list[Breach]:
    """Check every text file under `root` and give the breaches in order."""
    found: list[Breach] = []
    for file in _text_files(root):
        path = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8")
        found += check_text(path, text)
        if file.suffix == ".py":
            found += check_module(path, text)
    return sorted(found)


def check_text(path: str, text: str) -> list[Breach]:
    """Check one file, whatever its language, for unfinished work and for paths of one machine."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if _UNFINISHED.search(line):
            found.append(Breach(path, number, "unfinished: do it or drop it"))
        if _MACHINE_PATH.search(line) and not _is_test(path):
            found.append(Breach(path, number, "a path of one machine"))
    return found


def check_module(path: str, text: str) -> list[Breach]:
    """Check one Python module."""
    tree = ast.parse(text)
    foreign = _foreign(tree)
    breaches = [Breach(path, line, message) for line, message in _shape(path, text, tree)]
    for node in ast.walk(tree):
        if node in foreign:
            continue
        breaches += [Breach(path, node.lineno, message) for message in _messages(path, node)]  # type: ignore[attr-defined]
    breaches += [Breach(path, node.lineno, "SQL outside shared/db") for node in _stray_sql(path, tree)]
    return breaches


def _text_files(root: Path) -> Iterator[Path]:
    for entry in sorted(root.iterdir()):
        if entry.is_dir():
            if not entry.name.startswith((".", "__")) and entry.name not in SKIPPED_FOLDERS:
                yield from _text_files(entry)
        elif entry.suffix in TEXT_SUFFIXES and not entry.name.startswith("."):
            yield entry


def _is_test(path: str) -> bool:
    return path.startswith(("tests/", "benchmarks/"))


def _is_migration(path: str) -> bool:
    return path.startswith("migrations/versions/")


def _foreign(tree: ast.Module) -> set[ast.AST]:
    """Find what has the shape of somebody else's code: protocols with their methods, and overrides."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(_last(base) == "Protocol" for base in node.bases):
            found |= {node, *node.body}
        elif isinstance(node, Function) and any(_last(mark) == "override" for mark in node.decorator_list):
            found.add(node)
    return found


def _shape(path: str, text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    lines = text.count("\n")
    if lines > MODULE_LINES and not _is_test(path) and not _is_migration(path):
        yield 1, f"{lines} lines, at most {MODULE_LINES}: which noun has no module yet?"
    is_bare = len(tree.body) == 1 or path == CLIENT_DOOR
    if path.endswith("__init__.py") and (not is_bare or ast.get_docstring(tree) is None):
        yield 1, "__init__.py is a docstring and nothing else"
    if _empty_words(Path(path).stem):
        yield 1, "this module's name says nothing"


def _messages(path: str, node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _function(path, node)
        case ast.ClassDef():
            yield from _class(node)
        case ast.Import() | ast.ImportFrom():
            yield from _import(path, node)
        case ast.Call():
            yield from _call(path, node)
        case ast.ExceptHandler() if _catches_all(node) and path not in CATCHES_ALL and not _is_test(path):
            yield "catches everything: name the errors"


def _function(path: str, node: Function) -> Iterator[str]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > FUNCTION_LINES and not _is_migration(path):
        yield f"{node.name} has {lines} lines, at most {FUNCTION_LINES}"
    if (depth := _depth(node.body)) > NESTING:
        yield f"{node.name} is nested {depth} deep, at most {NESTING}"
    if any(isinstance(inner, ast.Import | ast.ImportFrom) for inner in ast.walk(node)):
        yield f"{node.name} imports something: imports stand at the top"
    if _is_test(path):
        return
    arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    own = [argument for argument in arguments if argument.arg not in ("self", "cls")]
    if len(own) > PARAMETERS:
        yield f"{node.name} has {len(own)} parameters, at most {PARAMETERS}"
    for argument in own:
        if argument.annotation is not None and ast.unparse(argument.annotation) in ("bool", "bool | None"):
            yield f"{node.name} has the boolean parameter {argument.arg}: two functions, or an enum"


def _depth(body: list[ast.stmt]) -> int:
    """Count the blocks around the deepest statement; `elif` and `case` add none of their own."""
    return max((_depth_of(statement) for statement in body), default=0)


def _depth_of(statement: ast.stmt) -> int:
    if not isinstance(statement, Block):
        return 0
    inner = 1 + max(_depth(part) for part in _parts(statement))
    otherwise = getattr(statement, "orelse", [])
    if isinstance(statement, ast.If) and len(otherwise) == 1 and isinstance(otherwise[0], ast.If):
        return max(inner, _depth_of(otherwise[0]))
    return max(inner, 1 + _depth(otherwise))


def _parts(statement: Block) -> list[list[ast.stmt]]:
    match statement:
        case ast.Match():
            return [case.body for case in statement.cases]
        case ast.Try():
            handlers = [handler.body for handler in statement.handlers]
            return [statement.body, *handlers, statement.finalbody]
        case _:
            return [statement.body]


def _class(node: ast.ClassDef) -> Iterator[str]:
    methods = [
        entry
        for entry in node.body
        if isinstance(entry, Function) and not (entry.name.startswith("__") and entry.name.endswith("__"))
    ]
    if len(methods) > METHODS:
        yield f"{node.name} has {len(methods)} methods, at most {METHODS}"
    if _empty_words(node.name):
        yield f"the name {node.name} says nothing"


def _empty_words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)} & EMPTY_NAMES


def _import(path: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    names = [alias.name for alias in node.names]
    roots = {module.split(".")[0]} if module else {name.split(".")[0] for name in names}
    if roots & UNSAFE_LOADERS and not _is_test(path):
        yield "loads objects from bytes: use JSON"
    if module == "time" and set(names) & {"sleep", "time", "monotonic"}:
        yield "import time itself, so that its readers are seen"


def _call(path: str, node: ast.Call) -> Iterator[str]:
    name = _dotted(node.func)
    tail = ".".join(name.split(".")[-2:])
    if tail == "time.sleep":
        yield "nothing just sleeps: wait for an event, or poll against a deadline"
    if tail in CLOCK_READS and path != CLOCK and not _is_test(path):
        yield f"{tail} reads the clock: take a Clock or a now"
    if isinstance(node.func, ast.Attribute) and node.func.attr in LOG_METHODS:
        yield from _log_call(node) if _last(node.func.value) in LOGGERS else ()


def _log_call(node: ast.Call) -> Iterator[str]:
    if not node.args or not (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
        yield "a log event is a constant text; the rest are keys"
    values = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    if any(isinstance(value, ast.JoinedStr) for value in values):
        yield "a log value is not a formatted text"


def _catches_all(node: ast.ExceptHandler) -> bool:
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(kind is None or _dotted(kind) in ("Exception", "BaseException") for kind in kinds)


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{_dotted(node.value)}.{node.attr}"
        case ast.Call():
            return _dotted(node.func)
        case _:
            return ""


def _last(node: ast.AST) -> str:
    return _dotted(node).rpartition(".")[2]


def _stray_sql(path: str, tree: ast.Module) -> Iterator[ast.Constant]:
    if not path.startswith(SQL_HOMES) and not _is_test(path):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SQL.match(node.value):
                yield node


def main(arguments: list[str]) -> int:
    """Print every breach under the given root; the answer is the exit code."""
    breaches = check_tree(Path(arguments[0] if arguments else "."))
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
