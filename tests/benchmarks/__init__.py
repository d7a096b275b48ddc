"""The benchmark suite: that it runs, and that it counts what it says."""

from pathlib import Path
import sys

# As run.py finds its modules: the benchmarks are programs, no package.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
