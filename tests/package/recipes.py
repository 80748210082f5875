#!/usr/bin/env python3
"""Checks the vcpkg port and the Conan recipe against the sources: version, CMake options, files, targets.

  recipes.py SOURCE_TREE    prints what is wrong; exit code 1 if something is
  recipes.py --self-test
"""

import ast
import json
import pathlib
import re
import sys


def first(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1) if found else None


def string_lists(tree):
    """The tuples of strings in `for name in (...)` statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            yield [element.value for element in node.iter.elts]


def check(files, exists):
    """files: the text of each file by its name; exists: whether a path is there."""
    cmake = files["CMakeLists.txt"]
    version = first(r"^  VERSION ([0-9.]+)$", cmake)
    options = set(re.findall(r"\b(ZKRECIPES_[A-Z_]+)\b", cmake))
    targets = set(re.findall(r"zkrecipes::[a-z_]+", files["cmake/zkrecipes-config.cmake.in"]))
    wrong = []

    manifest = json.loads(files["packaging/vcpkg/zkrecipes/vcpkg.json"])
    if manifest["version"] != version:
        wrong.append(f"vcpkg.json: version {manifest['version']}, the sources have {version}")
    port = files["packaging/vcpkg/zkrecipes/portfile.cmake"]
    handled = set(re.findall(r"\b([a-z]+) ZKRECIPES_BUILD_", first(r"FEATURES (.*)\)", port) or ""))
    for feature in sorted(handled ^ set(manifest["features"])):
        wrong.append(f"vcpkg: the feature {feature} is in only one of vcpkg.json and portfile.cmake")

    recipe = files["packaging/conan/conanfile.py"]
    tree = ast.parse(recipe)
    for paths in string_lists(tree):
        wrong += [f"conanfile.py: {path} is not there" for path in paths if not exists(path)]
    for target in sorted(set(re.findall(r'"cmake_target_name", "([^"]+)"', recipe)) - targets):
        wrong.append(f"conanfile.py: the target {target} is not one that find_package(zkrecipes) makes")

    for name, text in (("portfile.cmake", port), ("conanfile.py", recipe)):
        for option in sorted(set(re.findall(r"\b(ZKRECIPES_[A-Z_]+)\b", text)) - options):
            wrong.append(f"{name}: the option {option} is not one of CMakeLists.txt")
    return wrong


NAMES = (
    "CMakeLists.txt",
    "cmake/zkrecipes-config.cmake.in",
    "packaging/vcpkg/zkrecipes/vcpkg.json",
    "packaging/vcpkg/zkrecipes/portfile.cmake",
    "packaging/conan/conanfile.py",
)


def self_test():
    good = {
        NAMES[0]: "project(\n  zkrecipes\n  VERSION 1.2.3\n)\noption(ZKRECIPES_BUILD_TOOLS \"\" ON)\n",
        NAMES[1]: "# zkrecipes::zkrecipes\n",
        NAMES[2]: '{"version": "1.2.3", "features": {"tools": {}}}',
        NAMES[3]: "vcpkg_check_features(\n  OUT_FEATURE_OPTIONS x\n  FEATURES tools ZKRECIPES_BUILD_TOOLS)\n",
        NAMES[4]: 'for d in ("src",):\n    pass\nx("cmake_target_name", "zkrecipes::zkrecipes")\n',
    }
    assert check(good, lambda path: True) == []
    for name, old, new, expected in (
        (NAMES[0], "1.2.3", "1.3.0", "version 1.2.3"),
        (NAMES[2], '"tools"', '"tool"', "feature tool "),
        (NAMES[3], "BUILD_TOOLS)", "BUILD_TOOL)", "option ZKRECIPES_BUILD_TOOL "),
        (NAMES[4], "zkrecipes::zkrecipes", "zkrecipes::other", "target zkrecipes::other"),
    ):
        bad = dict(good)
        bad[name] = good[name].replace(old, new)
        assert any(expected in line for line in check(bad, lambda path: True)), (name, check(bad, lambda path: True))
    assert check(good, lambda path: path != "src") == ["conanfile.py: src is not there"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    top = pathlib.Path(sys.argv[1])
    wrong = check({name: (top / name).read_text() for name in NAMES}, lambda path: (top / path).exists())
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
