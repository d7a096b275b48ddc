"""The compiled extension, or None where there is none."""

from __future__ import annotations

from typing import Any

native: Any
try:
    from .. import _native as native
except ImportError:  # the source tree is on the path, and nothing was built
    native = None
