import unittest

from notes import parse, render


class NotesTest(unittest.TestCase):
    def test_blank_lines_are_skipped(self) -> None:
        self.assertEqual(parse("a: 1\n\nb: 2\n"), {"a": "1", "b": "2"})

    def test_the_last_line_needs_no_newline(self) -> None:
        self.assertEqual(parse("a: 1\nb: 2"), {"a": "1", "b": "2"})

    def test_what_was_rendered_is_read_again(self) -> None:
        notes = {"shop": "milk", "call": "Anna"}
        self.assertEqual(parse(render(notes)), notes)


if __name__ == "__main__":
    unittest.main()
