"""What is said of a home that can only be read fits one line, and names what is missing."""

from rune.errors import CorruptJournalError, NewerFormatError, StorageUnavailableError, UnmigratedDialectError
from rune.surface.reading_mode import not_sent, notice


def test_a_disk_that_cannot_be_written_hides_nothing() -> None:
    why = StorageUnavailableError("/home: the disk is full", hint="Free some space.")
    assert notice(why) == "nothing can be written: /home: the disk is full. Free some space."
    assert not_sent(why).message == "nothing can be written, only read: /home: the disk is full"
    assert not_sent(why).hint == "Free some space."


def test_damage_and_a_newer_format_may_hide_something() -> None:
    damage = notice(CorruptJournalError("odd", file="w000", line=2, byte=3))
    assert damage.startswith("the journal is damaged: what lies behind the damage may be missing")
    assert "w000, line 2, byte 3: odd." in damage
    assert "`rune doctor`" in damage
    assert notice(NewerFormatError("format 9")).startswith("what a newer Rune wrote is not shown, and nothing can")


def test_another_programs_file_is_named_with_the_way_out() -> None:
    why = UnmigratedDialectError("'w001' is not written in this journal's form", hint="Move that file.")
    assert notice(why) == (
        "what another program put into the journal's folder is not shown, and nothing can be written: "
        "'w001' is not written in this journal's form. Move that file."
    )
