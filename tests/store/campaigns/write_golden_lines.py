"""Write a golden line of every kind of event: `python -m tests.store.campaigns.write_golden_lines`. Run by hand, once.

Like the golden home, the file stays as it is once a released version wrote such lines.
"""

from pathlib import Path

from rune.store import codec
from tests.fakes.ids import CountedIds
from tests.store.samples import DEVICE, one_of_each

LINES = Path(__file__).parents[2] / "data" / "journal" / "w000-000001.jsonl"
_BOOT = "1f3d9a52-7c41-4a0e-9b7d-2f6c1e8a5d10"
_BEGAN = 1_796_047_200_000


def lines() -> bytes:
    """Return a segment with one event of each kind, a millisecond apart."""
    header = codec.seal_header(
        boot_id=_BOOT, opened="2026-11-30T14:00:00.000Z", prev=codec.CHAIN_START, segment=1, writer="w000"
    )
    written, chain = [header.line], header.chain
    for seq, event in enumerate(one_of_each(CountedIds()), 1):
        place = codec.Place(writer="w000", seq=seq, hlc=_BEGAN + seq - 1, more=0, prev=chain, device_id=DEVICE)
        line, chain = codec.seal(codec.prepare(event), place)
        written.append(line)
    return b"".join(written)


def main() -> None:
    if LINES.exists():
        raise SystemExit(f"{LINES} is there: golden lines are written once")
    LINES.write_bytes(lines())


if __name__ == "__main__":
    main()
