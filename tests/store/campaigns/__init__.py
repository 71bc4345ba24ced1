"""Campaigns: long and hostile runs that try to make the spine lose something. The short forms run everywhere."""
