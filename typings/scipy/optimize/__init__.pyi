from collections.abc import Sequence

class OptimizeResult:
    x: Sequence[float]
    success: bool
    message: str

def linprog(
    c: Sequence[float],
    A_ub: Sequence[Sequence[float]],
    b_ub: Sequence[float],
    A_eq: Sequence[Sequence[float]],
    b_eq: Sequence[float],
    bounds: Sequence[tuple[float, ...]],
    method: str,
) -> OptimizeResult: ...
