// All kernels of the trainer on GPUs: see device.h.
#include "device.h"

#include "sum.h"

#include "dense.h"
#include "image.h"
#include "norm.h"
#include "update.h"
