"""What every program must hold, checked before it is compiled and after it was read from a file."""

from __future__ import annotations

from ._errors import GraphError
from ._ir import Program
from ._plan import NOT_IN_BLOCKS, Block


def verify(program: Program) -> None:
    """Check order, ownership, and types that inference gives again; the programs of blocks too.

    Raises:
        GraphError: a transformation of ours broke the program.
    """
    for position, operation in enumerate(program.operations):
        if operation.position != position or operation.graph is not program:
            raise GraphError(f"verify: operations must stay where they were made, got {operation!r} elsewhere")
        for tensor in operation.input_tensors:
            if tensor.graph is not program or tensor.op.position >= position:
                raise GraphError(f"verify: inputs must be made before they are read, got {tensor!r} in {operation!r}")
        for block in operation.attrs.values():
            if isinstance(block, Block):
                _verify_block(block)
        inferred = operation.kind.infer_all([t.type for t in operation.input_tensors], operation.attrs)
        made = tuple(t.type for t in operation.output_tensors)
        if inferred != made:
            raise GraphError(f"verify: outputs of {operation!r} must be as inferred, {inferred}, got {made}")
        if len(operation.output_names) != len(made):
            raise GraphError(
                f"verify: outputs of {operation!r} must have a name each, got {len(made)} and {operation.output_names}"
            )


def _verify_block(block: Block) -> None:
    for operation in block.program.operations:
        if operation.kind.name in NOT_IN_BLOCKS:
            raise GraphError(f"verify: blocks must not {NOT_IN_BLOCKS[operation.kind.name]}, got {operation!r}")
    verify(block.program)
