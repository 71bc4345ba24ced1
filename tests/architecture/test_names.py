"""Names say what a thing is about."""

import ast
import re

from tests.architecture.repository import PACKAGE, name_of, project_files, python_files, tree_of

# The words, in pieces: this file, too, is looked at.
DRAWERS = re.compile("util|helper|manage" + "r|mixin", re.IGNORECASE)


def test_no_module_class_or_function_is_named_for_a_drawer() -> None:
    found = [name_of(path) for path in project_files() if path.suffix == ".py" and DRAWERS.search(path.stem)]
    for path in python_files("src", "tests", "benchmarks", "scripts"):
        for node in ast.walk(tree_of(path)):
            named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if named and DRAWERS.search(node.name):
                found.append(f"{name_of(path)}::{node.name}")
    assert not found


def test_every_package_says_what_it_is_for() -> None:
    folders = {path.parent for path in python_files("src")}
    silent = [
        name_of(folder)
        for folder in sorted(folders)
        if not (folder / "__init__.py").is_file() or not ast.get_docstring(tree_of(folder / "__init__.py"))
    ]
    assert PACKAGE in folders
    assert not silent
