"""Prints the versions of distributions, and Python's own, as JSON.

    python versions.py NAME ...
"""

import json
import platform
import sys
from importlib import metadata

found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    found[name] = metadata.version(name)
json.dump(found, sys.stdout)
