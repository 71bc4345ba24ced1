"""Campaigns against the loop: kills, answers at the wrong time, swaps, secrets, hostile text. Short forms run in CI."""
