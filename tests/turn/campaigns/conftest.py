"""The seed that all choices of a campaign follow from is the one of the store's campaigns."""

from tests.store.campaigns.conftest import seed

__all__ = ["seed"]
