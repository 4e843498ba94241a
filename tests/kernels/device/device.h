/* device.h: the device that check-cuda uses. cuda.cu implements these functions for a GPU, and
 * host/device.cpp for the host.
 *
 *     device d;
 *     if (const char *why = device_open(&d)) skip(why);
 *     void *p = d.memory.allocate(n);                   // for the CPU; the device has a twin
 *     if (const char *why = device_wait()) fail(why);   // every launch so far has ended
 *
 * After an error of the device, all later calls may fail. Only one thread may call these functions.
 * A text that a function returns is valid until the next call. */
#ifndef SGT_CHECK_DEVICE_H
#define SGT_CHECK_DEVICE_H

#include "tests/kernels/harness.h"

struct device {
    char name[128];
    int arch;            /* compute capability; 90: sm_90 */
    check_memory memory; /* `allocate` NULL: buffers lie between guard pages in the CPU's memory */
};

/* true: a GPU; false: the host stands in for it, and is too slow for large cases */
extern const bool device_is_card;

const char *device_open(device *d); /* return NULL, or why there is no device */
const char *device_wait();          /* wait for all launches; return NULL, or the error */
void *device_address(void *p); /* copy p's contents to the device and return its address there */

#endif
