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

/* The device's memory: what a copy returns is NULL, or why it failed. */
struct mirror_calls {
    void *(*allocate)(size_t size); /* NULL: none left */
    void (*release)(void *p);
    /* either way; waits for the device */
    const char *(*copy)(void *to, const void *from, size_t size);
};

void mirror_open(const mirror_calls *calls);
void *mirror_allocate(size_t size); /* 256-byte aligned there and here; NULL: none left */
void mirror_release(void *p);
const char *mirror_push(); /* NULL, or why not */
const char *mirror_pull();

/* The twin of an address; an address that is in no buffer is its own. */
void *mirror_there(const void *p);

/* Each word of size / 8 that is an address in a buffer becomes its twin: pointers, alone or in a
 * struct. */
void mirror_translate(void *bytes, size_t size);

#endif
