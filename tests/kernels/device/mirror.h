/* mirror.h: buffers that a test reads and writes in the CPU's memory, each with a twin in the
 * device's own, so that kernels, TMA and atomics work where training has its tensors. Before a
 * launch, what the test has changed goes to the twins, and the launch's arguments that point into a
 * buffer are made to point into its twin; after the wait, all comes back.
 *
 *     mirror_open(&calls);
 *     float *x = (float *)mirror_allocate(n);   // the test's address
 *     mirror_push();                            // before a launch
 *     mirror_translate(argument, size);         // each of its arguments, a copy of it
 *     mirror_pull();                            // once the device has finished
 *     mirror_release(x);
 *
 * One thread. What the test writes between two launches without a wait is only taken where no
 * kernel wrote. */
#ifndef SGT_CHECK_MIRROR_H
#define SGT_CHECK_MIRROR_H

#include <stddef.h>

/* The device's memory. Copies return NULL, or why they failed. */
struct mirror_calls {
    void *(*allocate)(size_t size); /* NULL: out of memory */
    void (*release)(void *p);
    /* in either direction; waits for the device */
    const char *(*copy)(void *to, const void *from, size_t size);
};

void mirror_open(const mirror_calls *calls);
/* 256-byte aligned on the device and the host; NULL: out of memory */
void *mirror_allocate(size_t size);
void mirror_release(void *p);
const char *mirror_push(); /* NULL, or why it failed */
const char *mirror_pull();

/* Return the device's address for a host address; an address outside all buffers is returned as it
 * is. */
void *mirror_there(const void *p);

/* Replace each of the size / 8 words that is an address in a buffer by the device's address:
 * pointers, alone or in a struct. */
void mirror_translate(void *bytes, size_t size);

#endif
