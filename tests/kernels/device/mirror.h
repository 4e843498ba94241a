/* mirror.h: buffers that a test reads and writes in the CPU's memory, each with a twin in the
 * device's memory. So kernels, TMA and atomics work in the memory where training has its tensors.
 * Before a launch, bytes that the test changed are copied to the twins, and pointers into a buffer
 * among the launch's arguments are replaced by pointers into its twin. After the wait, bytes that
 * kernels changed are copied back.
 *
 *     mirror_open(&calls);
 *     float *x = (float *)mirror_allocate(n);   // the test's address
 *     mirror_push();                            // before a launch
 *     mirror_translate(argument, size);         // each of its arguments, a copy of it
 *     mirror_pull();                            // once the device has finished
 *     mirror_release(x);
 *
 * Only one thread may call these functions. If the test writes between two launches without a wait,
 * its values are kept only in bytes that no kernel wrote. */
#ifndef SGT_CHECK_MIRROR_H
#define SGT_CHECK_MIRROR_H

#include <stddef.h>

/* Functions for the device's memory. Copies return NULL, or the reason why they failed. */
struct mirror_calls {
    void *(*allocate)(size_t size); /* NULL: out of memory */
    void (*release)(void *p);
    /* copy in either direction; waits for the device */
    const char *(*copy)(void *to, const void *from, size_t size);
};

mirror_calls mirror_open(const mirror_calls *calls); /* return the previous ones, or zeros */
/* Allocate a buffer, 256-byte aligned on the device and on the host. Return NULL if memory runs
 * out. */
void *mirror_allocate(size_t size);
void mirror_release(void *p);
const char *mirror_push(); /* return NULL, or why it failed */
const char *mirror_pull();

/* Return the device address for a host address. An address outside all buffers is returned
 * unchanged. */
void *mirror_there(const void *p);

/* Replace each of the size / 8 words that is an address in a buffer by the device's address.
 * Pointers are found both by themselves and inside structs. */
void mirror_translate(void *bytes, size_t size);

#endif
