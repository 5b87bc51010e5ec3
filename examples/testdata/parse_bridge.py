"""The options that Megatron-Bridge's run_recipe.py makes of a command line.

What it imports of its library needs TransformerEngine. Stand-ins take that
place: names of data sets are those in the library's source, and KEY=VALUE is
passed through, whatever it says.
"""
import ast
import os
import sys
from unittest import mock

import parsing

source = os.environ["PYTHONPATH"]
utils = "megatron.bridge.recipes.utils"
for name in utils, "megatron.bridge.training.config":
    parts = name.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[: i + 1]), mock.MagicMock())
library = mock.MagicMock()
path = os.path.join(source, "src", *utils.split("."), "dataset_utils.py")
with open(path) as file:
    for node in ast.parse(file.read()).body:
        if isinstance(node, ast.AnnAssign) and (
            node.target.id == "DATASET_PRESETS"
        ):
            library.DATASET_PRESETS = [key.value for key in node.value.keys]
sys.modules[utils + ".dataset_utils"] = library
sys.path.insert(0, os.path.join(source, "scripts", "training"))
from run_recipe import _selected_recipe_name, parse_args  # noqa: E402


def parse(world, arguments):
    options, options.overrides = parse_args(arguments)
    options.recipe = _selected_recipe_name(options)
    return options


parsing.main(parse)
