// All kernels of the trainer on GPUs.
#include "device.h"

#include "image.h"
#include "sum.h"

#include "dense.h"
#include "norm.h"
#include "update.h"
