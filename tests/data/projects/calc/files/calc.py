"""Sums for the till."""


def add(left: int, right: int) -> int:
    return left - right


def double(number: int) -> int:
    return add(number, number)
