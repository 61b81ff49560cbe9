#!/usr/bin/env python3
"""Fails if a file of a room includes a header of a higher room, or headers go in a circle.

The rooms of src/ are floors of a house, lowest first. A file may include headers of its
own room and of lower ones; ONLY says which may use fewer. Public headers belong to a room too.
Within a room no header may include itself by way of others: one that does has no place in
the order of reading. (Circles of functions are seen by check_circles.py.)

Sections of recipes, src/ROOM/NAME_section.{c,h}, are linked wherever a recipe is: they may
include base, their own room, and other sections of rooms not above theirs. Each has its line
in src/recipe_sections.h, the list that src/recipe_sections.c makes a table of; those two stand
outside of the order, and only that table includes the list.
usage: check_layers.py [ROOT]
"""

import os
import re
import sys

ROOMS = ["base", "page", "media", "atari", "env", "kernel", "codec", "net", "embed", "solve", "graph", "op",
         "pass", "plan", "exec", "data", "model", "store", "infer", "exchange", "field", "train", "play",
         "recommend", "trust", "svm", "shrink", "edit", "seal", "serve", "cli"]
ONLY = {
    "page": {"base", "page"},
    "media": {"base", "media"},
    "atari": {"base", "atari"},
    "env": {"base", "atari", "env"},
    "kernel": {"base", "kernel"},
    "data": {"base", "media", "data"},
    "embed": {"base", "kernel", "net", "embed"},
    "solve": {"base", "page", "kernel", "net", "solve"},
    "seal": {"base", "page", "kernel", "net", "data", "model", "store", "seal"},
}
PUBLIC = {
    "status": "base",
    "stop": "base",
    "version": "base",
    "env": "env",
    "topk": "kernel",
    "codec": "codec",
    "compare_text": "trust",
    "graph": "graph",
    "op": "op",
    "data": "data",
    "text": "data",
    "memory_text": "trust",
    "model": "model",
    "net": "net",
    "train": "train",
    "session": "train",
    "finetune": "train",
    "play": "play",
    "embed": "recommend",
    "store": "store",
    "infer": "infer",
    "generate": "infer",
    "run": "infer",
    "recipe": "base",
    "trust": "trust",
    "uncertainty": "trust",
    "shrink": "shrink",
    "field": "field",
    "solve": "solve",
    "seal": "seal",
    "serve": "serve",
}
UMBRELLA = "stint"  # stint.h takes all public headers: for users and the top floor

TABLE = "recipe_sections"
SECTION = re.compile(r"^(\w+)_section\.[ch]$")
SECTION_LINE = re.compile(r"^STI_SECTION\((\w+)\)$", re.M)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1), match.group(2)


def room_of_header(header, own_folder, src):
    """(room, None), (None, trouble), or (None, None) for headers of the system."""
    first, _, rest = header.partition("/")
    if first == "stint":
        area = rest[:-2] if rest.endswith(".h") else rest
        if area in PUBLIC:
            return PUBLIC[area], None
        if area == UMBRELLA:
            return ROOMS[-1], None
        return None, "is of no known room; add it to PUBLIC in scripts/check_layers.py"
    if rest and first in ROOMS and os.path.isdir(os.path.join(src, first)):
        return first, None
    if not rest and os.path.exists(os.path.join(own_folder, header)):
        return None, "is named without its room; write \"room/%s\"" % header
    return None, None


def may_include(room, other):
    if room in ONLY:
        return other in ONLY[room]
    return ROOMS.index(other) <= ROOMS.index(room)


def section_may_include(room, other, header):
    return other in ("base", room) or bool(SECTION.match(os.path.basename(header)))


def check_file(path, room, src, troubles):
    section = SECTION.match(os.path.basename(path))
    for number, bracket, header in includes(path):
        other, trouble = room_of_header(header, os.path.dirname(path), src)
        where = "%s:%d: " % (os.path.relpath(path, os.path.dirname(src)), number)
        if trouble:
            troubles.append(where + '"%s" %s' % (header, trouble))
        elif other and not may_include(room, other):
            troubles.append(where + '%s may not use %s: "%s"' % (room, other, header))
        elif other and section and not section_may_include(room, other, header):
            troubles.append(where + 'a section of a recipe may not use %s: "%s"' % (other, header))
        elif header == TABLE + ".h":
            troubles.append(where + '"%s" is for src/%s.c alone' % (header, TABLE))
        elif bracket == '"' and not other and "/" in header:
            troubles.append(where + '"%s" is of no known room' % header)


def included_file(header, path, src):
    """The file of the tree that an #include of `path` means, or None."""
    public = os.path.join(os.path.dirname(src), "include")
    for folder in (os.path.dirname(path), src, public):
        candidate = os.path.normpath(os.path.join(folder, header))
        if os.path.isfile(candidate):
            return candidate
    return None


def check_circles(paths, src, troubles):
    """No file includes itself by way of others: each circle is told once."""
    needs = {path: [other for _, _, header in includes(path)
                    for other in [included_file(header, path, src)] if other]
             for path in paths}
    done = set()

    def visit(path, way):
        if path in way:
            circle = way[way.index(path):] + [path]
            troubles.append("a circle of #include: " + " -> ".join(
                os.path.relpath(p, os.path.dirname(src)) for p in circle))
        elif path not in done:
            for other in needs.get(path, []):
                visit(other, way + [path])
            done.add(path)

    for path in paths:
        visit(path, [])


def sources(folder):
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".c", ".h", ".inc")):
                yield os.path.join(here, name)


def check_table(src, troubles):
    """The table of sections takes base alone, and names each section file once."""
    path = os.path.join(src, TABLE + ".c")
    if not os.path.exists(path):
        return
    for number, _, header in includes(path):
        if not header.startswith("base/") and header != TABLE + ".h":
            troubles.append('src/%s.c:%d: the table may use base alone: "%s"' % (
                TABLE, number, header))
    with open(os.path.join(src, TABLE + ".h"), encoding="utf-8") as file:
        lines = SECTION_LINE.findall(file.read())
    files = {}
    for path in sources(src):
        section = SECTION.match(os.path.basename(path))
        if section and path.endswith(".c"):
            files[section.group(1)] = os.path.relpath(path, os.path.dirname(src))
    for name in sorted(set(files) - set(lines)):
        troubles.append("%s: has no line in src/%s.h" % (files[name], TABLE))
    for name in sorted(set(lines) - set(files)):
        troubles.append("src/%s.h: %s has no file ROOM/%s_section.c" % (TABLE, name, name))


def check_unique_names(src, troubles):
    """File names are unique in the whole tree, so that backtraces are clear."""
    seen = {}
    for path in sources(src):
        name = os.path.basename(path)
        if name in seen:
            troubles.append("%s: the name is taken by %s" % (
                os.path.relpath(path, os.path.dirname(src)),
                os.path.relpath(seen[name], os.path.dirname(src))))
        seen[name] = path


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(here))
    src = os.path.join(root, "src")
    troubles = []
    checked = []
    for entry in sorted(os.listdir(src)):
        folder = os.path.join(src, entry)
        if not os.path.isdir(folder):
            continue
        if entry not in ROOMS:
            troubles.append("src/%s: is no known room" % entry)
            continue
        for path in sources(folder):
            check_file(path, entry, src, troubles)
            checked.append(path)
    public = os.path.join(root, "include", "stint")
    for path in sources(public):
        area = os.path.basename(path)[:-2]
        if area == UMBRELLA:
            continue
        if area not in PUBLIC:
            troubles.append("include/stint/%s.h: is of no known room; add it to PUBLIC in "
                            "scripts/check_layers.py" % area)
            continue
        check_file(path, PUBLIC[area], src, troubles)
        checked.append(path)
    check_table(src, troubles)
    check_circles(checked, src, troubles)
    check_unique_names(src, troubles)
    for trouble in troubles:
        print(trouble)
    if not troubles:
        print("layers: %d files keep to the order of the rooms" % len(checked))
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
