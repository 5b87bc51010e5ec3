"""Writes the files beside it: images in JPEG and what Pillow makes of each.

NAME.jpg  the image
NAME.rgb  its pixels, as Pillow decodes it
NAME.crop the square: shorter side resized to 32 by the bilinear filter, and
          28 × 28 pixels cut from the middle, as torchvision does it

Made with Pillow 13.0.0 (libjpeg-turbo 3.2.0).
"""
import pathlib

import numpy
from PIL import Image

here = pathlib.Path(__file__).parent
random = numpy.random.default_rng(1)
images = {
    "wide": (97, 61, 2, "RGB"),  # name: width, height, subsampling, mode
    "tall": (45, 80, 0, "RGB"),
    "small": (20, 21, 0, "RGB"),
    "gray": (64, 50, 0, "L"),
}
for name, (width, height, subsampling, mode) in images.items():
    coarse = random.integers(0, 256, (6, 8, 3), dtype=numpy.uint8)
    image = Image.fromarray(coarse).resize((width, height), Image.BICUBIC)
    image = image.convert(mode)
    image.save(here / f"{name}.jpg", quality=90, subsampling=subsampling)
    image = Image.open(here / f"{name}.jpg").convert("RGB")
    (here / f"{name}.rgb").write_bytes(image.tobytes())
    if width < height:
        size = (32, int(32 * height / width))
    else:
        size = (int(32 * width / height), 32)
    image = image.resize(size, Image.BILINEAR)
    left = int(round((size[0] - 28) / 2.0))
    top = int(round((size[1] - 28) / 2.0))
    image = image.crop((left, top, left + 28, top + 28))
    (here / f"{name}.crop").write_bytes(image.tobytes())
