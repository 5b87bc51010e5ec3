"""The whole configuration that torchtitan makes of a command line."""
from torchtitan.config import ConfigManager
from torchtitan.distributed import ParallelDims

import parsing


def parse(world, arguments):
    config = ConfigManager().parse_args(arguments)
    p = config.parallelism
    # As its trainer does: degrees whose product is not the world are refused.
    ParallelDims(
        dp_replicate=p.data_parallel_replicate_degree,
        dp_shard=p.data_parallel_shard_degree,
        cp=p.context_parallel_degree,
        tp=p.tensor_parallel_degree,
        pp=p.pipeline_parallel_degree,
        ep=p.expert_parallel_degree,
        world_size=world,
    )
    return config


parsing.main(parse)
