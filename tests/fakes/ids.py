"""Ids that count, so that a test can name them."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class CountedIds:
    """Gives `msg_0000...1`, `msg_0000...2`: one counter for all kinds."""

    def __init__(self) -> None:
        self._count = 0

    def new_id(self, kind: str) -> str:
        self._count += 1
        value, digits = self._count, ""
        while value:
            value, digit = divmod(value, 32)
            digits = _ALPHABET[digit] + digits
        return f"{kind}_{digits:0>26}"
