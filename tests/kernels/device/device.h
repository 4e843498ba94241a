/* device.h: what check-cuda-device asks of the machine it runs on: cuda.cu is a GPU, pretend.cpp stands in for one.
 *
 *     device d;
 *     if (const char *why = device_open(&d, DEVICE_MAPPED)) skip(why);
 *     void *p = d.memory.allocate(n);               // the CPU and the device reach it
 *     if (const char *why = device_wait()) fail(why); // every launch so far has ended; an error may be the last word
 *
 * One thread. A text that is returned lives until the next call. */
#ifndef SGT_CHECK_DEVICE_H
#define SGT_CHECK_DEVICE_H

#include "harness.h"

/* Buffers in the CPU's memory, read and written by the device where they lie; or in memory that moves to the device
 * when a kernel touches it and back when the CPU does. */
enum device_place { DEVICE_MAPPED, DEVICE_MANAGED };

struct device {
    char name[128];
    int arch; /* 90: sm_90 */
    check_memory memory;
};

const char *device_open(device *d, device_place place); /* NULL, or why there is none */
const char *device_wait();                              /* NULL, or what went wrong */

#endif
