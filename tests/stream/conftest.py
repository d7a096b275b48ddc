"""What several tests of streams want."""

from __future__ import annotations

from native.test_kernels import ISAS
import pytest

from recurra import _native


# On x86, generic is another name of x86-64-v2's kernels.
@pytest.fixture(params=[name for name in ISAS if name != "generic"])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every instruction set that this machine has."""
    monkeypatch.setenv("RECURRA_ISA", request.param)
    try:
        _native.isa()
    except ValueError as error:
        pytest.skip(f"needs a machine with {request.param}: {error}")
    return request.param
