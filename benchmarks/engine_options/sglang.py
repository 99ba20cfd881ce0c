"""SGLang's options from its published source, unpacked: ``python -m benchmarks.engine_options.sglang FOLDER VERSION``.

FOLDER holds ``sglang/srt`` of a wheel. Options are dataclass fields annotated ``A[type, "help" | Arg(...)]``
(``arg_groups/arg_utils.py add_cli_args_from_dataclass``) and the ``add_argument`` calls of ``server_args.py``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.engine_options.table import Option, write

ADDRESS = "https://github.com/sgl-project/sglang/blob/v{}/python/sglang/srt/server_args.py"


def options(folder: Path) -> list[Option]:
    """Every option of ``sglang.launch_server``."""
    source = folder / "sglang" / "srt"
    trees = [ast.parse(path.read_text()) for path in sorted((source / "arg_groups" / "fields").glob("*.py"))]
    found = [option for tree in trees for option in _fields(tree)]
    found += _calls(ast.parse((source / "server_args.py").read_text()))
    return list({each.names: each for each in found}.values())


def _fields(tree: ast.AST) -> Iterator[Option]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Subscript):
            option = _field(node)
            if option is not None:
                yield option


def _field(node: ast.AnnAssign) -> Option | None:
    assert isinstance(node.annotation, ast.Subscript)
    assert isinstance(node.target, ast.Name)
    if ast.unparse(node.annotation.value) != "A" or not isinstance(node.annotation.slice, ast.Tuple):
        return None
    kind = ast.unparse(node.annotation.slice.elts[0])
    given = next((_keywords(each) for each in node.annotation.slice.elts[1:] if _is_arg(each)), None)
    words = " ".join(each.value for each in node.annotation.slice.elts[1:] if _is_text(each))  # type: ignore[attr-defined]
    if given is None and not words:
        return None
    settings = given or {}
    if "no_cli" in settings:
        return None
    name = _literal(settings.get("cli_name")) or "--" + node.target.id.replace("_", "-")
    names = (str(name), *map(str, _literal(settings.get("aliases")) or ()))
    listed = _literal(settings.get("choices"))
    choices = listed if isinstance(listed, tuple) else _literal_type(kind)
    words += str(_literal(settings.get("help")) or "")
    return Option(names=names, takes=_takes(kind, settings), choices=choices, deprecated=_old(words))


def _takes(kind: str, settings: dict[str, ast.expr]) -> str:
    if "action" in settings:
        return "none" if "true" in ast.unparse(settings["action"]).lower() else "one"
    inner = kind.removeprefix("Optional[")
    if inner.startswith("bool"):
        return "none"
    nargs = _literal(settings.get("nargs"))
    if inner.lower().startswith("list[") and "type_parser" not in settings:
        return "many"
    return "optional" if nargs == "?" else "many" if nargs in ("+", "*") else "one"


def _literal_type(kind: str) -> tuple[str, ...]:
    inner = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    if not inner.startswith("Literal["):
        return ()
    return tuple(str(each) for each in _values(ast.parse(inner.removeprefix("Literal")).body[0].value))  # type: ignore[attr-defined]


def _values(node: ast.AST) -> list[object]:
    found = ast.literal_eval(node)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _is_arg(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "Arg"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _keywords(node: ast.AST) -> dict[str, ast.expr]:
    assert isinstance(node, ast.Call)
    return {each.arg: each.value for each in node.keywords if each.arg}


def _literal(node: ast.expr | None) -> tuple[str, ...] | str | None:
    try:
        found = None if node is None else ast.literal_eval(node)
    except ValueError:
        return None
    return tuple(map(str, found)) if isinstance(found, (list, tuple)) else found


def _calls(tree: ast.AST) -> Iterator[Option]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "parser.add_argument":
            settings = _keywords(node)
            names = tuple(str(_literal(each)) for each in node.args)
            action = ast.unparse(settings["action"]).lower() if "action" in settings else ""
            old = "deprecated" in action or _old(str(_literal(settings.get("help")) or ""))
            yield Option(names=names, takes="none" if "true" in action else "one", deprecated=old)


def _old(words: str) -> bool:
    return words.lower().lstrip("(").startswith("deprecated")


if __name__ == "__main__":
    made_by = "python -m benchmarks.engine_options.sglang FOLDER VERSION"
    write("sglang", sys.argv[2], ADDRESS.format(sys.argv[2]), made_by, options(Path(sys.argv[1])))
