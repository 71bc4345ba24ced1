from shop.prices import price_of


class Cart:
    def __init__(self, discount_percent: int = 0) -> None:
        self.items: list[str] = []
        self.discount_percent = discount_percent

    def add(self, name: str) -> None:
        self.items.append(name)

    def total(self) -> int:
        """Return what is to be paid, in cents, with the discount taken off."""
        full = sum(price_of(name) for name in self.items)
        return full - self.discount_percent
