"""The options that Megatron-LM makes of a command line."""
import os
import sys
import typing

import typing_extensions

import parsing

if not hasattr(typing, "override"):  # it takes this from Python 3.12
    typing.override = typing_extensions.override
from megatron.training.arguments import parse_args  # noqa: E402


def parse(world, arguments):
    os.environ.update(RANK="0", WORLD_SIZE=str(world))
    sys.argv = ["pretrain_gpt.py"] + arguments
    return parse_args()


parsing.main(parse)
