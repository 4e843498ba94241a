/* device.h: what check-cuda-device asks of the machine it runs on: cuda.cu is a GPU, pretend.cpp
 * stands in for one.
 *
 *     device d;
 *     if (const char *why = device_open(&d)) skip(why);
 *     void *p = d.memory.allocate(n);                 // the CPU reads and writes it, the device its twin (mirror.h)
 *     if (const char *why = device_wait()) fail(why); // every launch so far has ended; an error may be the last word
 *
 * One thread. A text that is returned lives until the next call. */
#ifndef SGT_CHECK_DEVICE_H
#define SGT_CHECK_DEVICE_H

#include "tests/kernels/harness.h"

struct device {
    char name[128];
    int arch; /* 90: sm_90 */
    /* bytes of the GPU's memory; 0: the host is the device, which is too slow for large cases */
    size_t memory_size;
    check_memory memory;
};

const char *device_open(device *d); /* NULL, or why there is no device */
const char *device_wait();          /* NULL, or what went wrong */
void *device_address(void *p);      /* the device's address of p, with p's contents copied there */

#endif
