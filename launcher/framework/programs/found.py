"""Says what an interpreter has of a framework.

    python found.py "MODULE ..."

Prints JSON: versions by library, devices in words. A module that is there in
name only, such as Horovod's for a framework that it was not built for, is an
error.
"""

import contextlib
import importlib
import json
import os
import sys


def main(names):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with contextlib.redirect_stdout(sys.stderr):  # some talk when imported
        for name in names:
            module = importlib.import_module(name)
            if (name == "torch.distributed.fsdp"
                    and not hasattr(module, "fully_shard")):
                raise ImportError(f"PyTorch {torch_version()} has no FSDP2"
                                  " (torch.distributed.fsdp.fully_shard); 2.6"
                                  " is the first that has")
            if name.startswith("horovod."):
                if not hasattr(module, "init"):
                    raise ImportError(f"Horovod was not built with {name}")
                if not module.gloo_built():
                    raise ImportError("Horovod was built without gloo")
        versions = {}
        for library in ("horovod", "torch", "deepspeed", "tensorflow", "jax",
                        "mxnet", "pytriton", "mlserver", "kserve",
                        "onnxruntime"):
            if library in sys.modules:
                versions[library] = getattr(sys.modules[library],
                                            "__version__", "?")
        found = devices()
    json.dump({"versions": versions, "devices": found}, sys.stdout)


def torch_version():
    return sys.modules["torch"].__version__


def devices():
    found = ["cpu"]
    if "torch" in sys.modules:
        import torch
        if torch.cuda.is_available():
            found += [torch.cuda.get_device_name(i)
                      for i in range(torch.cuda.device_count())]
    elif "tensorflow" in sys.modules:
        import tensorflow as tf
        found += [device.name
                  for device in tf.config.list_physical_devices("GPU")]
    elif "jax" in sys.modules:
        import jax
        found += [device.device_kind for device in jax.devices()
                  if device.platform != "cpu"]
    return found


if __name__ == "__main__":
    main(sys.argv[1].split())
