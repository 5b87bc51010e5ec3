// All kernels of the trainer on GPUs.
#include "device.h"

#include "bfloat16.h"
#include "sum.h"

#include "dense.h"
#include "image.h"
#include "norm.h"
#include "update.h"
