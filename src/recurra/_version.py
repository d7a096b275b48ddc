"""The version, stated once, in the package's metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("recurra")
except PackageNotFoundError:  # the source tree is on the path, and nothing is installed
    __version__ = "0+unknown"
