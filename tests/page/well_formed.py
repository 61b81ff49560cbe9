"""Fails if a page's tags do not match, an id or a reference to outside is there, or one
of its drawings is no XML. usage: well_formed.py PAGE.html [DRAWING.svg]"""

import html.parser
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "img", "br"}


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.seen = [], {}

    def handle_starttag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        names = [name for name, _ in attributes]
        if len(names) != len(set(names)):
            sys.exit("%s: an attribute is there twice at %s" % (tag, self.getpos()))
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith("data:"):
                sys.exit("%s: comes from outside: %s" % (tag, value))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            sys.exit("</%s> closes something else at %s" % (tag, self.getpos()))


page = open(sys.argv[1], encoding="utf-8").read()
reader = Reader()
reader.feed(page)
reader.close()
if reader.open:
    sys.exit("never closed: %s" % reader.open)
if "script" in reader.seen:
    sys.exit("the page holds a script")
drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
drawings += [open(path, encoding="utf-8").read() for path in sys.argv[2:]]
if not drawings:
    sys.exit("no drawing is on the page")
for drawing in drawings:
    root = xml.etree.ElementTree.fromstring(drawing)
    for element in root.iter():
        for name, value in element.attrib.items():
            if re.search(r"\bnan\b|\binf\b", value):
                sys.exit("%s %s=%s" % (element.tag, name, value))
            if name in ("width", "height", "r") and float(value) < 0:
                sys.exit("%s %s=%s" % (element.tag, name, value))
