"""What the systems that we follow have, by what name it is here, and which test proves it.

``python -m tests.parity`` writes `docs/parity.md` from the rows in this folder.
"""
