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
    /* bytes of the card's memory; 0: the host is the device, and has no time for large cases */
    size_t memory_size;
    check_memory memory;
};

const char *device_open(device *d); /* NULL, or why there is none */
const char *device_wait();          /* NULL, or what went wrong */
void *device_address(void *p);      /* by which the device knows p; what p holds is there */

#endif
