#!/usr/bin/env python3
"""Parses a report as XML and prints its sections, each with the number of its pictures and of its tables.

  well_formed.py REPORT.html [TEXT…]     fails if the page is not well-formed, loads something, or lacks a text
"""
import re
import sys
import xml.etree.ElementTree as tree
from pathlib import Path


def main(path, texts):
    raw = Path(path).read_text(encoding="utf-8")
    page = tree.fromstring(raw)
    for element in page.iter():
        tag = element.tag.rpartition("}")[2]
        if tag in ("script", "img", "iframe", "object"):
            sys.exit(f"the page has a {tag}")
        loaded = [value for key, value in element.attrib.items() if key in ("src", "href") and value != "data:,"]
        if loaded or re.search(r"url\(|@import", element.text or ""):
            sys.exit(f"a {tag} of the page loads {loaded}")
    shown = " ".join("".join(page.itertext()).split())
    for text in texts:
        if text not in shown:
            sys.exit(f"the page does not show '{text}'")
    for section in page.iter("section"):
        pictures = sum(1 for _ in section.iter("{http://www.w3.org/2000/svg}svg"))
        print(section.get("id"), pictures, sum(1 for _ in section.iter("table")))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
