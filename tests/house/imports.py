"""Finds imports inside the package that point the wrong way.

A module may import what stands before it, and its own package. Imports inside functions, under TYPE_CHECKING and by
`import_module("…")` count like any other.
"""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

PACKAGE = "drumline"
# The package itself, where the public names are, stands after everything that it may show.
LAYERS = (
    *("errors", "failpoint", "clock", "events", "model", "logs", "policy", "middleware", "sealing", "stores"),
    *("engine", "tracing", "webhook"),
    *("client", "schedules", "task", "blocking", "config", "loading", "registry", "opening", "app", "testing", PACKAGE),
    *("web", "demo", "chaos", "cli", "__main__"),
)
# The front door names the pages, and imports them when somebody asks for them.
DOORS = {("app", "web")}
CONCRETE_STORES = ("sqlite", "postgres", "redis")
STORE_LAYERS = {
    "base": 0,
    "statements": 1,
    "hub": 2,
    "sealed": 2,
    "memory": 3,
    "files": 4,
    "rows": 4,
    "forks": 4,
    "replies": 4,
    "hands": 5,
    "relational": 5,
    **dict.fromkeys(CONCRETE_STORES, 6),
    "open": 7,
}
IMPURE = (
    *("asyncio", "concurrent", "http", "io", "multiprocessing", "os", "pathlib", "secrets", "select"),
    *("signal", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "urllib"),
)


def find_wrong_imports(package: Path) -> list[str]:
    """Say, for each import that breaks the order, where it is and what is wrong with it."""
    modules = {_module_name(package, path): path for path in sorted(package.rglob("*.py"))}
    return [
        f"{path.relative_to(package.parent)}:{line}: {complaint}"
        for importer, path in modules.items()
        for line, imported in sorted(set(_imports(importer, path, modules.keys())))
        if (complaint := _complain(importer, imported))
    ]


def find_leaks(init: Path) -> list[str]:
    """Say what a package's front file holds besides the public names it lists in `__all__`."""
    tree = ast.parse(init.read_text())
    shown = set(_listed_names(tree))
    # What is imported under TYPE_CHECKING is shown too, by `__getattr__`; what is not ours only serves that.
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    ours = (node for node in imports if (node.module or "").partition(".")[0] == PACKAGE)
    names = {alias.asname or alias.name for node in ours for alias in node.names}
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined = [node.name for node in tree.body if isinstance(node, definitions)]
    return [
        *(f"{name} is imported but not listed in __all__" for name in sorted(names - shown)),
        *(f"{name} is listed in __all__ but private" for name in sorted(shown) if _is_private(name)),
        *(f"{name} is defined here: move it to a module" for name in defined if not _is_dunder(name)),
    ]


def _module_name(package: Path, path: Path) -> str:
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(importer: str, path: Path, modules: Collection[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(names=names):
                source = _absolute(node, importer, is_package=path.name == "__init__.py")
                submodules = (f"{source}.{alias.name}" for alias in names)
                yield from ((node.lineno, name if name in modules else source) for name in submodules)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if _imports_by_name(function):
                yield node.lineno, name


def _absolute(node: ast.ImportFrom, importer: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    here = importer.split(".") if is_package else importer.split(".")[:-1]
    base = here[: len(here) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _imports_by_name(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in ("import_module", "__import__")
        case _:
            return False


def _complain(importer: str, imported: str) -> str | None:
    here, there = importer.split("."), imported.split(".")
    layer = _layer(here)
    if layer not in LAYERS:
        return f"{layer} has no place in the order of modules: give it one, in the design and in this test"
    if there[0] != PACKAGE:
        return _complain_about_outside(layer, there[0])
    target = _layer(there)
    if target not in LAYERS:
        return f"{imported} is not a module of the package"
    if layer == "model" and target not in ("errors", "model"):
        return f"model may import only errors, not {imported}"
    if LAYERS.index(target) > LAYERS.index(layer) and (layer, target) not in DOORS:
        return f"{importer} may not import {imported}, which stands after it"
    if target == "stores":
        return _complain_about_store(importer, layer, imported)
    return None


def _complain_about_outside(layer: str, imported: str) -> str | None:
    if imported == "random" and layer not in ("clock", "policy", "chaos"):
        return f"{layer} may not import random: it belongs to clock, seeded policies and seeded chaos"
    if imported in IMPURE and layer in ("model", "policy"):
        return f"{layer} is pure and may not import {imported}"
    return None


def _complain_about_store(importer: str, layer: str, imported: str) -> str | None:
    target = _store_part(imported)
    if layer != "stores":
        is_hidden = target in CONCRETE_STORES and layer != "cli"
        return f"{importer} may not import {imported}: only stores.open knows concrete stores" if is_hidden else None
    here = _store_part(importer)
    # The front file of the package is not part of the order: it may show any store, and no store may import it.
    if not here or target == here:
        return None
    for part in (here, target):
        if part and part not in STORE_LAYERS:
            return f"stores.{part} has no place in the order of stores: give it one, in the design and in this test"
    if not target or STORE_LAYERS[target] >= STORE_LAYERS[here]:
        return f"{importer} may not import {imported}, which does not stand before it"
    return None


def _layer(parts: list[str]) -> str:
    return parts[1] if len(parts) > 1 else parts[0]


def _store_part(module: str) -> str:
    _, _, *rest = module.split(".")
    return rest[0] if rest else ""


def _listed_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names) | ast.Tuple(elts=names)):
                yield from (str(name.value) for name in names if isinstance(name, ast.Constant))


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not _is_dunder(name)
