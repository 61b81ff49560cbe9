#!/usr/bin/env python3
"""Fails if the files of a room need each other in a circle.

A file needs another where it uses a symbol that the other defines. Within a room that must
be an order: lower files know nothing of higher ones, and so one of them can be read, tested
and replaced alone. A room that has a folder a family (kernel/) is looked at as a whole.
What is read are the object files of a build (symbols by nm): sources do not say what a macro
comes to. Weak symbols count as any other; what the linker never sees (static functions, calls
by a table of pointers that another file fills) makes no circle. Nor does a table that the
program hands to a lower file on purpose (OUTSIDE): who reads it knows none of its rows.
usage: check_circles.py BUILD_DIR
"""

import collections
import os
import re
import subprocess
import sys

PREFIX = "stint_"  # object libraries are stint_ROOM.dir
# src/recipe_sections.c: base/recipe.c finds the sections of all rooms by it, and a test may
# link a table of its own.
OUTSIDE = {"recipe_sections.c.o"}
DEFINED = set("ABCDGRSTVWu")  # kinds of nm, see its manual


def object_files(build):
    """Room -> paths of its object files, below BUILD_DIR/src/CMakeFiles/stint_ROOM.dir."""
    rooms = collections.defaultdict(list)
    top = os.path.join(build, "src", "CMakeFiles")
    for entry in sorted(os.listdir(top)) if os.path.isdir(top) else []:
        match = re.fullmatch(re.escape(PREFIX) + r"(\w+)\.dir", entry)
        for here, folders, names in os.walk(os.path.join(top, entry)) if match else []:
            folders.sort()
            rooms[match.group(1)] += [os.path.join(here, name) for name in sorted(names)
                                      if name.endswith(".o") and name not in OUTSIDE]
    return {room: paths for room, paths in rooms.items() if paths}


def symbols(paths):
    """(file that defines a symbol, symbols that a file uses), by one call of nm."""
    defined, used = {}, collections.defaultdict(set)
    listing = subprocess.run(["nm", "--print-file-name", "--extern-only"] + paths,
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in listing.splitlines():
        path, _, rest = line.rpartition(":")
        fields = rest.split()
        kind, name = fields[-2:]
        if kind in DEFINED:
            defined[name] = path
        elif kind in "Uvw":
            used[path].add(name)
    return defined, used


def edges(paths):
    """File -> {file that it needs: one symbol that it needs of it}."""
    defined, used = symbols(paths)
    needs = {path: {} for path in paths}
    for path in paths:
        for name in sorted(used[path]):
            other = defined.get(name)
            if other and other != path:
                needs[path].setdefault(other, name)
    return needs


def components(needs):
    """Strongly connected components of two files or more (Tarjan 1972, without recursion)."""
    order, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in needs:
        work = [(root, iter(needs[root]))] if root not in order else []
        if work:
            order[root] = low[root] = len(order)
            stack.append(root)
            on_stack.add(root)
        while work:
            node, rest = work[-1]
            other = next(rest, None)
            if other is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    members = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(members)
                    if len(members) > 1:
                        found.append(sorted(members))
            elif other not in order:
                order[other] = low[other] = len(order)
                stack.append(other)
                on_stack.add(other)
                work.append((other, iter(needs[other])))
            elif other in on_stack:
                low[node] = min(low[node], order[other])
    return found


def shortest_cycle(needs, members):
    """The files of a shortest way from a member back to itself."""
    best = None
    for start in members:
        came_from, queue = {start: None}, collections.deque([start])
        while queue:
            node = queue.popleft()
            if start in needs[node]:
                way = []
                while node is not None:
                    way.append(node)
                    node = came_from[node]
                if best is None or len(way) < len(best):
                    best = way[::-1]
                break
            for other in needs[node]:
                if other in members and other not in came_from:
                    came_from[other] = node
                    queue.append(other)
    return best


def describe(room, needs, members):
    def name(path):  # base/fail.c of .../stint_base.dir/base/fail.c.o
        return re.sub(r"^.*\.dir/", "", path)[:-len(".o")]

    lines = ["%s: a circle of %d files: %s" % (room, len(members),
                                              " ".join(name(m) for m in members))]
    cycle = shortest_cycle(needs, members)
    for node, other in zip(cycle, cycle[1:] + cycle[:1]):
        lines.append("  %s uses %s of %s" % (name(node), needs[node][other], name(other)))
    return "\n".join(lines)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_circles.py BUILD_DIR")
    rooms = object_files(sys.argv[1])
    if not rooms:
        sys.exit("%s: no object files in src/CMakeFiles/%sROOM.dir; build it first"
                 % (sys.argv[1], PREFIX))
    circles = 0
    for room, paths in sorted(rooms.items()):
        needs = edges(paths)
        for members in components(needs):
            print(describe(room, needs, members))
            circles += 1
    if circles == 0:
        print("circles: none between %d files of %d rooms"
              % (sum(len(paths) for paths in rooms.values()), len(rooms)))
    else:
        print("Move what both need into a file below them.")
    return 1 if circles else 0


if __name__ == "__main__":
    sys.exit(main())
