"""Which single changes of a source file no test notices: `python -m tests.support.mutations FILE TEST...`.

Each comparison, operator, constant and condition is changed, one at a time. Calls and assignments to
attributes are left out. What survives is a line that no test needs, or shows that a test is missing. The file
is changed where it is and restored in the end, so run this in a copy of the repository.
"""

import ast
import copy
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OTHERWISE: Final[dict[type[ast.AST], type[ast.AST]]] = {
    one: other
    for pair in (
        (ast.Lt, ast.LtE),
        (ast.Gt, ast.GtE),
        (ast.Eq, ast.NotEq),
        (ast.Is, ast.IsNot),
        (ast.In, ast.NotIn),
        (ast.Add, ast.Sub),
        (ast.Mult, ast.Div),
        (ast.BitOr, ast.BitAnd),
        (ast.LShift, ast.RShift),
    )
    for one, other in (pair, pair[::-1])
}
NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


def changes(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 - one case a kind of node
    """What may stand in place of a part of a syntax tree."""
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                changed = copy.deepcopy(node)
                changed.ops[place] = OTHERWISE[type(op)]()  # type: ignore[call-overload]
                yield changed
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OTHERWISE:
            other = copy.deepcopy(node)
            other.op = OTHERWISE[type(op)]()  # type: ignore[assignment]
            yield other
        case ast.BoolOp(op=op, values=values):
            for place in range(len(values)):
                rest = [*values[:place], *values[place + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name]), args, keywords)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Assign(targets=[ast.Attribute()]) | ast.Raise():
            yield ast.Pass()
    if isinstance(node, ast.If):
        for value in (True, False):
            yield ast.If(ast.Constant(value), node.body, node.orelse)


def mutants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What was changed where, and the source with that change."""
    seen = {ast.unparse(tree)}
    for parent in ast.walk(tree):
        if isinstance(parent, ast.JoinedStr) or ast.unparse(parent).startswith("log."):
            continue
        for name, value in ast.iter_fields(parent):
            for place, node in enumerate(value if isinstance(value, list) else [value]):
                for changed in changes(node) if isinstance(node, ast.AST) else ():
                    put(parent, name, place, changed)
                    text = ast.unparse(ast.fix_missing_locations(tree))
                    put(parent, name, place, node)
                    if text not in seen:
                        seen.add(text)
                        before, after = (ast.unparse(one).partition("\n")[0] for one in (node, changed))
                        yield f"{getattr(node, 'lineno', 0)}: {before} -> {after}", text


def put(parent: ast.AST, name: str, place: int, node: ast.AST) -> None:
    """Set a field of a node, or a place in one that is a list."""
    value = getattr(parent, name)
    if isinstance(value, list):
        value[place] = node
    else:
        setattr(parent, name, node)


def notices(tests: list[str], limit: float) -> bool:
    """Whether a test fails, or they take too long."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    try:
        return subprocess.run(command, capture_output=True, timeout=limit, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def main(file: str, *tests: str) -> None:
    """Print what survives these tests, and how many changes there were."""
    path, began = Path(file), time.monotonic()
    source = path.read_text(encoding="utf-8")
    if notices([*tests], 600):
        sys.exit("the tests fail without a change")
    limit, counts = 6 * (time.monotonic() - began) + 20, [0, 0]
    try:
        for what, text in mutants(ast.parse(source)):
            path.write_text(text, encoding="utf-8")
            noticed = notices([*tests], limit)
            counts[noticed] += 1
            if not noticed:
                sys.stdout.write(f"survives: {what}\n")
    finally:
        path.write_text(source, encoding="utf-8")
    sys.stdout.write(f"{file}: {sum(counts)} mutants, {counts[True]} killed, {counts[False]} survive\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
