"""What scripts/corpus does to catalogs and documents."""

import struct
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import corpus_text as text  # noqa: E402


def mo(pairs, order="<"):
    """A .mo file."""
    table, blob, rows = 28, b"", []
    base = table + 16 * len(pairs)
    for side in (0, 1):
        for pair in pairs:
            rows.append((len(pair[side]), base + len(blob)))
            blob += pair[side] + b"\0"
    head = struct.pack(order + "7I", 0x950412DE, 0, len(pairs), table, table + 8 * len(pairs), 0, 0)
    return head + b"".join(struct.pack(order + "2I", *row) for row in rows) + blob


class Catalogs(unittest.TestCase):
    def test_reads_contexts_plurals_and_charsets(self):
        pairs = [(b"", b"Content-Type: text/plain; charset=ISO-8859-1\n"), (b"menu\4Open", b"Ouvrir"),
                 (b"one file\0%d files", b"un fichier\0%d fichiers"), (b"Summer", b"\xe9t\xe9")]
        wanted = [("Open", "Ouvrir"), ("one file", "un fichier"), ("Summer", "été")]
        for order in "<>":
            self.assertEqual(list(text.catalog(mo(pairs, order))), wanted)
        self.assertEqual(list(text.catalog(b"no catalog at all, but long enough")), [])

    def kept(self, english, french):
        result = text.clean_pair(english, french)
        self.assertEqual(result[2], "", (english, french))
        return result[:2]

    def left_out(self, english, french):
        return text.clean_pair(english, french)[2]

    def test_marks_of_menu_keys_go(self):
        self.assertEqual(self.kept("&File", "&Fichier"), ("File", "Fichier"))
        self.assertEqual(self.kept("E_xit now", "_Quitter maintenant"), ("Exit now", "Quitter maintenant"))
        self.assertEqual(self.kept("~Edit", "Édition (~E)"), ("Edit", "Édition"))
        self.assertEqual(self.kept("Cut && paste", "Couper && coller"), ("Cut & paste", "Couper & coller"))
        self.assertEqual(self.kept("the variable my_name", "la variable my_name")[0], "the variable my_name")

    def test_markup_and_spaces_go(self):
        self.assertEqual(self.kept("<b>Save</b> the\n  file &amp; leave", "<b>Enregistrer</b> le fichier &amp; quitter :"),
                         ("Save the file & leave", "Enregistrer le fichier & quitter :"))
        self.assertEqual(self.left_out("<br/>", "<br/>"), "empty or markup alone")
        self.assertEqual(self.kept("Name:", "Nom\u00a0:")[1], "Nom :")

    def test_what_is_left_out(self):
        self.assertEqual(self.left_out("Menu", "Menu"), "not translated")
        self.assertEqual(self.left_out("%d: %s", "%s : %d"), "few letters")
        self.assertEqual(self.left_out("%d files", "les fichiers"), "placeholders differ")
        self.assertEqual(self.kept("copy %s to %s", "copier %1$s vers %2$s")[1], "copier %1$s vers %2$s")
        self.assertEqual(self.left_out("Yes, please do so right now", "Oui"), "length ratio")
        self.assertEqual(self.left_out("word " * 200, "mot " * 200), "too long or control characters")

    def test_near_copies_have_one_key(self):
        self.assertEqual(text.key_of("Open file…"), text.key_of("open  File"))


class Documents(unittest.TestCase):
    def test_manual_pages(self):
        page = b".TH LS 1\n.SH NAME\nls \\- list\n.PP\nWith\n.B \\-l\nit shows\n\\fIlong\\fP lines, see\n.BR stat (2).\n.nf\ncode\n.fi\n"
        self.assertEqual(text.paragraphs("man1/ls.1", page),
                         ["ls - list", "With -l it shows long lines, see stat(2)."])

    def test_html(self):
        page = b"<head><title>x</title></head><p>One <i>two</i>.</p><pre>code</pre><ul><li>three &amp; four</ul>"
        self.assertEqual(text.paragraphs("a.html", page), ["One two.", "three & four"])

    def test_prose(self):
        self.assertTrue(text.is_prose("This is a sentence of the kind that is kept in the corpus."))
        self.assertFalse(text.is_prose("for (int i = 0; i < n; ++i) { a[i] = b[i] * c[i]; } // and so on."))
        self.assertFalse(text.is_prose("Ceci est une phrase que le corpus ne garde pas, bien sûr, parce que."))
        self.assertFalse(text.is_prose("Too short."))

    def test_licences(self):
        self.assertEqual(text.licences("Format: https://x/copyright-format/1.0/\nLicense: MIT\n text\nLicense: GPL-2+\n"),
                         ["GPL-2+", "MIT"])
        self.assertEqual(text.licences("see /usr/share/common-licenses/GPL-2. Or not"), ["GPL-2"])
        self.assertEqual(text.licences("nothing"), ["see its copyright file"])


if __name__ == "__main__":
    unittest.main()
