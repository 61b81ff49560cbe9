#!/usr/bin/env python3
"""Fails if a public header explains too little, or a comment begins with "Of ".

Of each header in include/stint/ the share of comment-only lines (lines that hold nothing but
comment, of all lines) is printed; below LEAST it is an error. In C files, shell scripts and
Python of src/, include/, tests/, bench/, fuzz/, scripts/ and cmake/ a comment begins with the
thing that it describes: one that begins with "Of " has no subject.
usage: check_comments.py [ROOT]
"""

import os
import re
import sys

LEAST = 50  # percent of a public header's lines
FOLDERS = ("src", "include", "tests", "bench", "fuzz", "scripts", "cmake")
ENDINGS = (".c", ".h", ".cpp", ".cu")
HASH_ENDINGS = (".sh", ".py", ".cmake", "CMakeLists.txt")  # whose comments begin with #
# Strings and characters first, so that "/*" inside of them begins no comment.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
WITHOUT_SUBJECT = re.compile(r"(?:/\*+!?<?|//+!?)[\s*]*Of\s")
HASH_WITHOUT_SUBJECT = re.compile(r"\s*#+\s+Of\s")


def comments(text):
    """Begin and text of every comment."""
    for match in TOKEN.finditer(text):
        if match.group()[0] == "/":
            yield match.start(), match.group()


def comment_share(text):
    """Percent of the lines that hold nothing but comment."""
    marked = list(text)
    for begin, comment in comments(text):
        for i, c in enumerate(comment, begin):
            if c != "\n":
                marked[i] = "\0"
    lines = "".join(marked).splitlines()
    only = sum("\0" in line and not line.replace("\0", "").strip() for line in lines)
    # A blank line inside of a comment belongs to it.
    for _, comment in comments(text):
        only += sum(not line.strip() for line in comment.split("\n")[1:-1])
    return 100 * only / max(1, len(lines))


def lines_without_subject(text):
    """Lines at which a comment of C begins with "Of "."""
    return [text.count("\n", 0, begin) + 1 for begin, comment in comments(text)
            if WITHOUT_SUBJECT.match(comment)]


def hash_lines_without_subject(text):
    """The same of comments that begin with #; a line below another goes on with it."""
    lines = [""] + text.splitlines()
    return [i for i in range(1, len(lines)) if HASH_WITHOUT_SUBJECT.match(lines[i])
            and not lines[i - 1].lstrip().startswith("#")]


def files_below(root, endings):
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.join(path, name)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    complaints = []
    headers = os.path.join(root, "include", "stint")
    for name in sorted(os.listdir(headers)):
        if not name.endswith(".h"):
            continue
        with open(os.path.join(headers, name), encoding="utf-8") as file:
            share = comment_share(file.read())
        print(f"{share:5.1f} %  include/stint/{name}")
        if share < LEAST:
            complaints.append(f"include/stint/{name}: {share:.1f} % of the lines are comment, "
                              f"at least {LEAST} % are wanted")
    for endings, find in ((ENDINGS, lines_without_subject),
                          (HASH_ENDINGS, hash_lines_without_subject)):
        for path in files_below(root, endings):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for line in find(text):
                complaints.append(f"{os.path.relpath(path, root)}:{line}: a comment begins with "
                                  f"the thing that it describes, not with \"Of\"")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
