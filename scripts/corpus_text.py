"""What scripts/corpus knows of text: taking it out of files, and telling what is worth keeping."""

import gzip
import html
import re
import struct
import subprocess
import tempfile
import zlib
from html.parser import HTMLParser
from pathlib import Path

# ---- licences

COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z]+-?[0-9.]*[0-9]|BSD|Artistic)")


def licences(text):
    """Short names from a debian/copyright file: those it states, or the common licences that it points to."""
    if "copyright-format" in text[:400] or re.match(r"Format(-Specification)?:", text):
        names = re.findall(r"^License: *(\S.*)$", text, re.M)
    else:
        names = COMMON.findall(text)
        if "public domain" in text.lower():
            names.append("public-domain")
    return sorted({name.strip() for name in names}) or ["see its copyright file"]


# ---- gettext catalogs

def catalog(data):
    """(English, French) of a .mo file; the singular of plurals, without contexts."""
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    if len(data) < 20 or struct.unpack(order + "I", data[:4])[0] != 0x950412DE:
        return
    count, originals, translations = struct.unpack(order + "3I", data[8:20])

    def texts(table):
        for i in range(count):
            size, offset = struct.unpack_from(order + "2I", data, table + 8 * i)
            yield data[offset:offset + size]

    charset = "utf-8"
    for message, translation in zip(texts(originals), texts(translations)):
        if not message:
            found = re.search(rb"charset=([\w-]+)", translation)
            charset = found[1].decode() if found and found[1].lower() != b"charset" else charset
            continue
        try:
            yield tuple(part.split(b"\0")[0].decode(charset) for part in (message.split(b"\4")[-1], translation))
        except (UnicodeDecodeError, LookupError):
            continue


TAG = re.compile(r"</?[A-Za-z][^<>]*>")
PLACEHOLDER = re.compile(r"%(?:\d+\$)?(?:\([^)]*\))?[-+#0]*\d*(?:\.\d+)?(?:hh|ll|[hlzjtqL])?[A-Za-z%]+|%\d+|%[A-Z]{2,}%?"
                         r"|\$\{[^}]*\}|\$\(\w*\)|\$\w+|\{[^{}]*\}|#\w+#|@\w+")
POSITION = re.compile(r"\d+\$")
LETTER = re.compile(r"[^\W\d_]")


def without_accelerators(text, other):
    """Without the marks of menu keys: &File, Save _As, ~Edit, Fichier (&F)."""
    text = re.sub(r"\s?\([&_~]\w\)", "", text)
    text = re.sub(r"&(?=[^\W_])", "", text) if "&&" not in text else text.replace("&&", "&")
    for mark in "_~":
        found = re.findall(rf"\w*{mark}\w+", text)
        if text.count(mark) == 1 and found and found[0] not in other:
            text = text.replace(mark, "")
    return text


def plain(text, other):
    text = TAG.sub(" ", text)
    text = re.sub(r"&(\w+|#\d+);", lambda m: html.unescape(m[0]), text)
    text = without_accelerators(text, other)
    text = text.replace("\\n", " ").replace("\\t", " ").replace("\u00ad", "")
    return re.sub(r"[\s\u00a0\u202f\u2009]+", " ", text).strip()


def clean_pair(message, translation):
    """(English, French, "") or ("", "", why it is left out)."""
    english, french = plain(message, translation), plain(translation, message)
    if not english or not french:
        return "", "", "empty or markup alone"
    if sum(map(len, LETTER.findall(english))) < max(3, 0.5 * len(english)) or not LETTER.search(french):
        return "", "", "few letters"
    if english == french:
        return "", "", "not translated"
    if not english.isascii() and len(re.findall(r"[^\W\d_a-zA-Z]", english)) > 3:
        return "", "", "not English"
    if max(len(english), len(french)) > 600 or re.search(r"[\x00-\x1f\x7f\ufffd]", english + french):
        return "", "", "too long or control characters"
    if not 0.4 <= (len(french) + 8) / (len(english) + 8) <= 2.5:
        return "", "", "length ratio"
    marks = [sorted(POSITION.sub("", mark) for mark in PLACEHOLDER.findall(text)) for text in (english, french)]
    if marks[0] != marks[1]:
        return "", "", "placeholders differ"
    return english, french, ""


def key_of(text):
    """The same for texts that differ in case, spaces and punctuation alone."""
    return re.sub(r"[\W_]+", " ", text.lower()).strip() or text


# ---- English documents

DOCUMENT = re.compile(r"\.(html?|txt|rst|pod)(\.gz)?$|/man\d\w*/.*\.[1-8]\w*(\.gz)?$|\.dict\.dz$")
OTHER_LANGUAGE = re.compile(r"/man/[a-z][a-z](_[A-Z]+|@\w+)?/|\.(de|fr|es|it|ja|ru|pt|pt-br|zh-cn|zh-tw|ko|pl|tr|da|nl|fi|ro)"
                            r"\.(html|txt)|changelog|NEWS|genindex|py-modindex|/search\.html|copyright$")


def is_english_document(name):
    if name.startswith("usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"):
        return True
    return bool(name.startswith("usr/share/") and DOCUMENT.search(name) and not OTHER_LANGUAGE.search(name))


class HtmlText(HTMLParser):
    """The text of paragraphs, list items and the like; scripts, code and tables are left out."""
    BLOCKS = {"p", "li", "dd", "dt", "div", "h1", "h2", "h3", "h4", "h5", "h6", "br", "td", "th", "tr", "section", "blockquote"}
    SKIPPED = {"script", "style", "pre", "table", "head", "nav", "svg", "form", "footer"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.depth = [], 0

    def handle_starttag(self, tag, attrs):
        self.depth += tag in self.SKIPPED
        if tag in self.BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag):
        if tag in self.SKIPPED and self.depth:
            self.depth -= 1
        if tag in self.BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data):
        if not self.depth:
            self.parts.append(data)


def from_html(text):
    parser = HtmlText()
    parser.feed(text)
    return "".join(parser.parts)


def from_man(text):
    """The running text of a manual page: requests are dropped or, where they carry text, replaced by it."""
    out, skip = [], False
    for line in text.splitlines():
        request = re.match(r"[.']\s*(\w+|\\\")\s*(.*)", line)
        if request:
            name, rest = request[1], request[2].replace('"', "")
            if name in ("nf", "EX", "TS", "ig", "de"):
                skip = True
            elif name in ("fi", "EE", "TE") or line.startswith(".."):
                skip = False
            if name in ("B", "I", "BR", "IR", "BI", "IB", "RB", "RI", "SM", "Nm", "Xr", "Fl", "Ar", "Pa"):
                rest = rest if len(name) == 1 else rest.replace("\\ ", "\0").replace(" ", "").replace("\0", " ")
                out.append("" if skip else rest)
            elif name not in ("ft", "RS", "RE", "\\\""):
                out.append("\n")
        elif line.startswith(".."):
            skip = False
        elif not skip:
            out.append(line)
    text = "\n".join(out)
    text = re.sub(r"\\f(\[\w*\]|\(..|.)|\\s[-+]?\d|\\[&|^/,:]|\\\*\[?\w+\]?", "", text)
    for escape, char in (("\\-", "-"), ("\\(aq", "'"), ("\\(dq", '"'), ("\\(em", "—"), ("\\(en", "–"), ("\\(bu", ""),
                         ("\\(lq", '"'), ("\\(rq", '"'), ("\\e", "\\"), ("\\ ", " "), ("\\~", " "), ("\\'", "'")):
        text = text.replace(escape, char)
    return re.sub(r"\\\(..|\\\[[^\]]*\]", "", text)


def from_marked_text(text):
    """reStructuredText, POD, vim's help and plain text: marks of roles and fonts go, paragraphs stay."""
    text = re.sub(r":[\w:+-]+:`~?([^`<]*?)(\s*<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`+([^`<]+?)(\s*<[^`]*>)?`+_{0,2}", r"\1", text)
    text = re.sub(r"\b[BIFCLES]<+\s?([^<>]*?)\s?>+", r"\1", text)
    text = re.sub(r"\*{1,2}([^*\n]+)\*{1,2}|\|([^|\s]+)\|", lambda m: m[1] or m[2], text)
    return re.sub(r"^(\.\.|=\w+|:\w+:).*$", "", text, flags=re.M)


def r_strings(data):
    """Every vector of texts in an R database, whose objects are zlib streams after four bytes each; here each is a book."""
    while len(data) > 4:
        stream = zlib.decompressobj()
        value, data = stream.decompress(data[4:]), stream.unused_data
        start = value.find(b"\0\0\0\x10")  # a vector of texts: its count, then each with flags and its size
        if start < 0:
            continue
        count, place, lines = struct.unpack(">I", value[start + 4:start + 8])[0], start + 8, []
        for _ in range(count):
            size = max(struct.unpack(">i", value[place + 4:place + 8])[0], 0)
            lines.append(value[place + 8:place + 8 + size].decode("utf-8", "replace"))
            place += 8 + size
        yield "\n".join(lines)


def text_of(name, data):
    if name.endswith((".gz", ".dz")):
        data, name = gzip.decompress(data), name.rsplit(".", 1)[0]
    if name.endswith(".rdb"):
        return "\n\n".join(r_strings(data))
    text = data.decode("utf-8", "replace")
    if re.search(r"\.html?$", name):
        return from_html(text)
    return from_man(text) if re.search(r"\.[1-8]\w*$", name) else from_marked_text(text)


def paragraphs(name, data):
    """The paragraphs of a document, each on one line."""
    text = re.sub(r"[ \t\u00a0]+", " ", text_of(name, data).replace("\r", ""))
    return [re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


COMMON_WORDS = frozenset("the of and to a in is that it for be as with this are by on not or from at have an was".split())


def is_prose(text):
    """English sentences, not code, lists or tables."""
    words = text.split()
    if len(words) < 10 or len(text) > 20000 or "\ufffd" in text:
        return False
    if not (text[0].isupper() or text[0] in "\"'(“‘_") or text[-1] not in ".!?:;)\"'”’_":
        return False  # the middle of something
    letters = sum(c.isalpha() or c == " " for c in text)
    common = sum(word.lower() in COMMON_WORDS for word in words)
    longest = max(map(len, words))
    return letters >= 0.85 * len(text) and common >= 0.15 * len(words) and longest <= 60


def bible(cache, files):
    """The King James Bible, a book per document; its own program, run from its unpacked package, reads it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("bible-kjv", "bible-kjv-text"):
            subprocess.run(["dpkg-deb", "-x", str(Path(cache) / files[name]), folder], check=True)
        done = subprocess.run([f"{folder}/usr/bin/bible", "-f", "-p", f"{folder}/usr/lib", "gen1:1-rev22:21"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    chapters = {}
    for line in done.stdout.splitlines():
        found = re.match(r"(\w+?)(\d+):\d+ (.*)", line)
        if found:
            chapters.setdefault((found[1], found[2]), []).append(found[3])
    books = {}
    for (book, _), verses in chapters.items():
        books.setdefault(book, []).append(" ".join(verses))
    return list(books.values())
