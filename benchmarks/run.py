"""Runs the benchmarks: `python benchmarks/run.py [NAME …]`. Prints a table each; `--json FILE` keeps the numbers."""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import platform
import sys
from typing import Any

import numpy as np

import recurra

HERE = pathlib.Path(__file__).parent


def table(rows: list[dict[str, Any]]) -> str:
    """Rows of one shape as text."""
    head = list(rows[0])
    cells = [head] + [[f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells)


def main() -> None:
    """Run what was asked for, by default everything."""
    known = sorted(p.stem for p in HERE.glob("*.py") if p.stem != "run")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}; all by default")
    parser.add_argument("--json", type=pathlib.Path, help="write the numbers, the machine and the versions here")
    options = parser.parse_args()
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"NAME must be one of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    sys.path.insert(0, str(HERE))
    results = {}
    for name in options.names or known:
        module = importlib.import_module(name)
        print(f"{name}: {(module.__doc__ or '').splitlines()[0]}")
        results[name] = module.measure()
        print(table(results[name]), end="\n\n")
    if options.json:
        machine = {
            "machine": platform.processor() or platform.machine(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "recurra": recurra.__version__,
        }
        options.json.write_text(json.dumps({**machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
