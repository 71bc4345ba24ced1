import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self) -> None:
        self.assertEqual(Cart().total(), 0)

    def test_prices_are_added(self) -> None:
        cart = Cart()
        cart.add("apple")
        cart.add("bread")
        self.assertEqual(cart.total(), 290)

    def test_the_discount_is_taken_off(self) -> None:
        cart = Cart(discount_percent=10)
        cart.add("apple")
        cart.add("bread")
        self.assertEqual(cart.total(), 261)
