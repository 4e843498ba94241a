/* device.h: which device a run takes, and why. */
#ifndef SGT_DEVICE_H
#define SGT_DEVICE_H

#include "base/error.h"

/* Whether CUDA can be used: SGT_EUNSUPPORTED says what is missing; the text contains "no CUDA driver" or "no CUDA
 * device" where that is it. Loads the driver's library and lets it go again. */
int sgt_device_cuda(sgt_error *err);

#endif
