#!/usr/bin/env python3
"""Reads the #include lines of the sources and a few telling names, and says where a layer reaches further than it may.

    layering.py ROOT        checks the sources below ROOT; prints each violation as file:line; exit 1 if there is one
    layering.py --self-test plants one violation of each rule in a scratch tree and checks that each is found
"""
import collections
import pathlib
import re
import sys
import tempfile

# From low to high. A layer may include itself and what stands before it.
LAYERS = ["src/base", "src/client", "src/session", "src/core", "recipes"]
# The folders of a layer, from low to high, by the same rule. ".": the files beside the folders; without it there are none
# but those named below.
ROOMS = {"src/core": ["operation", "queue", "hold", "acquire", "local", "node", "value"],
         "src/session": ["common", "stats", "connection", "requests", "lease", "."],
          "src/zklock": ["system", "process", "command_line", "report", "once", "around", "commands", "look"]}
WITHOUT_ROOM = {"src/zklock/main.cpp", "src/zklock/linked_spdlog.cpp"}
MOST_FILES = 25  # in one folder of src
# Folders beside the library: what of ours they may include, besides the public headers and themselves.
BESIDE = {"src/zklock": [], "testenv": [], "monitoring": [], "src/testing": ["src/base", "src/client"],
          "src/fake_server": ["src/base", "src/client", "src/session", "src/testing"]}
PUBLIC_HEADER_LINES = 150
# Public headers for users of another library, which none of the others include.
ADAPTERS = {"include/zkrecipes/asio": "boost/asio/"}

# Only these read clocks, start threads, wait with a time-out of their own or draw random numbers: the real Runtime, what
# drives the C client, and the probe, which runs on the blocking lane. Everything else would escape the simulation.
REAL_WORLD = ["src/base/threads/", "src/base/timer_", "src/client/tls/", "src/client/zk_", "src/session/connection/server_probe"]
REAL_WORLD_NAMES = re.compile(
    r"_clock::now\s*\(|\bclock_gettime\b|\bgettimeofday\b|\bstd::time\s*\(|\btimerfd_|"
    r"\bstd::j?thread\b(?!::id)|\bstd::async\b|\bpthread_create\b|\bboost::fibers::fiber\b|"
    r"\bsleep_(?:for|until)\b|\b(?:u|nano)?sleep\s*\(|\bwait_(?:for|until)\s*\(|"
    r"\brandom_device\b|\bmt19937|\bgetrandom\b|\bgetentropy\b|\bs?rand\s*\(|"
    r"\bis_passed\s*\(\s*\)")  # Deadline::is_passed() without an argument reads the clock

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def without_comments(text):
    """The lines with comments and string contents blanked; #include lines outside comments stay as they are."""
    token = re.compile(r"""'\\?"'|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/""", re.S)
    blanked = token.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text).split("\n")
    return [line if INCLUDE.match(line) and rest.lstrip().startswith("#") else rest
            for line, rest in zip(text.split("\n"), blanked)]


def layer_of_include(name, root):
    """Which of our folders a quoted or bracketed include names; None: not ours."""
    if name.startswith("zkrecipes/testenv/"):
        return "testenv"
    if name == "zkrecipes/prometheus.hpp":
        return "monitoring"
    if name.startswith(("testenv/", "recipes/", "tests/", "bench/")):
        return name.split("/")[0]
    if name.startswith("src/"):
        return "/".join(name.split("/")[:2])
    head = name.split("/")[0]
    return "src/" + head if "/" in name and (root / "src" / head).is_dir() else None


def folder_of(path):
    for folder in LAYERS + list(BESIDE) + ["include/zkrecipes"]:
        if path.startswith(folder + "/"):
            return folder
    return None


def room_of(folder, path):
    inner = path.removeprefix(folder + "/")
    return inner.split("/")[0] if "/" in inner else "."


def check_room(folder, path, name):
    """What a file of a layer that has rooms includes of the same layer."""
    rooms = ROOMS[folder]
    room, other = room_of(folder, path), room_of(folder, "src/" + name.removeprefix("src/"))
    if room in rooms and other in rooms and rooms.index(other) > rooms.index(room):
        yield f'{folder}/{room} is below {folder}/{other} and may not include "{name}"'


def check_include(root, path, folder, bracket, name):
    if "zookeeper/" in name or name.startswith(("zookeeper.h", "zookeeper.jute")):
        if not (path.startswith("src/client/") and path.endswith(".cpp")):
            yield f"<{name}> may be included only by .cpp files of src/client"
        return
    if name.startswith("../") or "/../" in name:
        yield f'"{name}": name files from src/ or the project root, not by ../'
        return
    ours = layer_of_include(name, root)
    if folder == "include/zkrecipes":
        # std headers have neither a slash nor a suffix.
        adapter = next((place for place in ADAPTERS if path.startswith((place + "/", place + "."))), None)
        if adapter and name.startswith(ADAPTERS[adapter]):
            return
        if ours or not (name.startswith("zkrecipes/") or (bracket == "<" and re.fullmatch(r"[a-z_0-9]+", name))):
            yield f"a public header may include only std and <zkrecipes/...>, not {name}"
        if not adapter and any(f"include/{name}".startswith((place + "/", place + ".")) for place in ADAPTERS):
            yield f"a public header may not include {name}, which needs another library"
    elif folder not in BESIDE and ours is None and bracket == '"' and not name.startswith("zkrecipes/") and "/" not in name:
        yield f'"{name}": name files from src/ or the project root'
    elif ours == folder and folder in ROOMS:
        yield from check_room(folder, path, name)
    elif ours is None or ours == folder:
        return
    elif folder in BESIDE:
        if ours not in BESIDE[folder]:
            yield f'{folder} may use only itself and the public headers, not "{name}"'
    elif ours not in LAYERS:
        yield f'the library may not include "{name}"'
    elif LAYERS.index(ours) > LAYERS.index(folder):
        yield f'{folder} is below {ours} and may not include "{name}"'


def check_file(root, path):
    folder = folder_of(path)
    if folder is None:
        return
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    lines = without_comments(text)
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if include:
            for problem in check_include(root, path, folder, include.group(1), include.group(2)):
                yield f"{path}:{number}: {problem}"
        elif folder in LAYERS and not path.startswith(tuple(REAL_WORLD)):
            named = REAL_WORLD_NAMES.search(line)
            if named:
                yield (f"{path}:{number}: {named.group(0).strip()} outside the Runtime: time, threads, waits with a time-out "
                       "and random numbers come from the Runtime alone, or the simulation cannot decide them")
    if folder == "include/zkrecipes" and len(lines) - 1 > PUBLIC_HEADER_LINES:
        yield f"{path}: {len(lines) - 1} lines; a public header has at most {PUBLIC_HEADER_LINES}"


def check(root):
    root = pathlib.Path(root)
    files = sorted(str(p.relative_to(root)) for top in ("include", "src", "recipes", "testenv", "monitoring")
                   for p in (root / top).rglob("*") if p.suffix in (".hpp", ".cpp", ".h", ".cc"))
    problems = [problem for path in files for problem in check_file(root, path)]
    for folder, rooms in ROOMS.items():
        problems += [f"{path}: in none of the folders of {folder}" for path in files
                     if path.startswith(folder + "/") and room_of(folder, path) not in rooms and path not in WITHOUT_ROOM]
    counts = collections.Counter(str(pathlib.PurePath(path).parent) for path in files if path.startswith("src/"))
    problems += [f"{folder}: {count} files; a folder has at most {MOST_FILES}" for folder, count in sorted(counts.items())
                 if count > MOST_FILES]
    # A folder that no rule knows would be free of rules; a rule without its folder has gone blind.
    problems += [f"{path}: in a folder that this test knows no rule for" for path in files if not folder_of(path)]
    seen = {folder_of(path) for path in files}
    problems += [f"{folder}: no files there; has it moved?" for folder in LAYERS + ["include/zkrecipes"] if folder not in seen]
    return files, problems


CLEAN = {
    "include/zkrecipes/a.hpp": "#pragma once\n#include <chrono>\n#include <zkrecipes/b.hpp>\n",
    "include/zkrecipes/asio.hpp": "#pragma once\n#include <zkrecipes/asio/x.hpp>\n",
    "include/zkrecipes/asio/x.hpp": "#pragma once\n#include <boost/asio/post.hpp>\n#include <zkrecipes/b.hpp>\n",
    "include/zkrecipes/b.hpp": "#pragma once\n// std::thread and steady_clock::now() in a comment\n",
    "src/base/runtime.hpp": "#pragma once\nclass Runtime {};\n",
    "src/base/threads/thread_runtime.cpp": '#include "base/runtime.hpp"\n#include <thread>\nstd::thread t;\n',
    "src/client/client.hpp": '#pragma once\n#include "base/runtime.hpp"\n',
    "src/client/zk_handle.cpp": "#include <zookeeper/zookeeper.h>\n",
    "src/session/core.cpp": '#include "client/client.hpp"\nconst char* s = "sleep_for(1)";\n/*\n#include "core/queue/rule.hpp"\n*/\nstd::thread::id owner;\n',
    "src/core/queue/rule.cpp": '#include "session/session.hpp"\n#include <spdlog/spdlog.h>\n#include "core/operation/types.hpp"\n',
    "src/zklock/main.cpp": '#include <zkrecipes/a.hpp>\n#include "zklock/command_line/options.hpp"\nstd::thread t;\n',
    "src/zklock/report/text.cpp": '#include "zklock/system/unique_fd.hpp"\n',
    "recipes/mutex.cpp": '#include <zkrecipes/a.hpp>\n#include "core/queue/rule.hpp"\n#include "recipes/mutex_impl.hpp"\n',
    "monitoring/src/collector.cpp": '#include <prometheus/collectable.h>\n#include <zkrecipes/a.hpp>\n#include <zkrecipes/prometheus.hpp>\n#include "families.hpp"\n',
    "testenv/src/zk_server.cpp": '#include <zkrecipes/testenv/zk_server.hpp>\n#include "zk_config.hpp"\n',
}
VIOLATIONS = {
    "src/base/low.cpp": ['#include "client/client.hpp"'],
    "src/client/low.cpp": ['#include "session/session.hpp"', '#include "src/session/session.hpp"', '#include <core/x.hpp>',
                           '#include "../session/session.hpp"'],
    "src/client/seen.hpp": ["#include <zookeeper/zookeeper.h>"],
    "src/session/low.cpp": ['#include "core/queue/rule.hpp"', '#include "recipes/mutex.hpp"', "#  include <zookeeper/zookeeper_log.h>",
                            "#include <zookeeper.h>", "#include <zkrecipes/testenv/zk_server.hpp>", '#include "zklock/command_line/options.hpp"',
                            "auto t = std::chrono::steady_clock::now();", "clock_gettime(CLOCK_BOOTTIME, &t);",
                            "std::thread t;", "std::jthread t;", "std::this_thread::sleep_for(1s);", "usleep(1);",
                            "changed.wait_for(lock, 1s);", "std::random_device d;", "if (deadline.is_passed()) return;",
                            'auto url = "http://x"; std::thread t;', "/* #include */ int x = rand();"],
    "src/session/common/low.cpp": ['#include "session/lease/hold.hpp"', '#include "session/session_core.hpp"'],
    "src/core/beside.cpp": ["int x;"],
    "src/core/queue/low.cpp": ['#include "core/hold/grant.hpp"', '#include "src/core/value/commit.hpp"','#include "recipes/mutex.hpp"', '#include "tests/support/await.hpp"', "boost::fibers::fiber f(g);"],
    "recipes/low.cpp": ['#include "zklock/command_line/options.hpp"', "std::mt19937_64 random;"],
    "src/zklock/beside.cpp": ["int x;"],
    "src/zklock/process/low.cpp": ['#include "zklock/report/console.hpp"', '#include "base/runtime.hpp"', '#include "session/session_core.hpp"', '#include <zkrecipes/testenv/x.hpp>',
                           "#include <zookeeper/zookeeper.h>"],
    "testenv/src/low.cpp": ["#include <zookeeper/zookeeper.h>", '#include "base/runtime.hpp"', '#include "recipes/mutex.hpp"'],
    "monitoring/src/low.cpp": ['#include "base/runtime.hpp"', '#include "src/session/session_core.hpp"', '#include <zkrecipes/testenv/zk_server.hpp>'],
    "testenv/include/zkrecipes/testenv/low.hpp": ["#include <zookeeper/zookeeper.h>"],
    "include/zkrecipes/low.hpp": ["#include <boost/fiber/fiber.hpp>", "#include <spdlog/spdlog.h>", "#include <zookeeper/zookeeper.h>",
                                  '#include "session/session_core.hpp"', "#include <sys/types.h>", "#include <unistd.h>",
                                  "#include <zkrecipes/testenv/zk_server.hpp>", "#include <zkrecipes/prometheus.hpp>",
                                  "#include <prometheus/collectable.h>", "\n" * 151],
    "include/zkrecipes/high.hpp": ["#include <zkrecipes/asio.hpp>", "#include <zkrecipes/asio/x.hpp>", "#include <boost/asio/post.hpp>"],
    "include/zkrecipes/asio/low.hpp": ["#include <boost/fiber/fiber.hpp>", '#include "session/session_core.hpp"'],
    "src/newlayer/low.cpp": ["int x;"],
}


def self_test():
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for path, text in CLEAN.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        problems = check(root)[1]
        if problems:
            failures.append("a clean tree is refused: " + "; ".join(problems))
        for path, lines in VIOLATIONS.items():
            for line in lines:
                planted = root / path
                planted.parent.mkdir(parents=True, exist_ok=True)
                planted.write_text("// planted\n" + line + "\n")
                problems = check(root)[1]
                if len(problems) != 1:
                    failures.append(f"planted in {path}: {line.strip()!r}: expected one violation, found {problems}")
                planted.unlink()
            if planted.parent.name == "newlayer":
                planted.parent.rmdir()
    for failure in failures:
        print(failure)
    print(f"{sum(map(len, VIOLATIONS.values()))} planted violations, {len(failures)} failures")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    files, problems = check(sys.argv[1])
    if len(files) < 20:
        problems.append(f"only {len(files)} source files found below {sys.argv[1]}: this is not the project")
    print("\n".join(problems) if problems else f"{len(files)} files, no violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
