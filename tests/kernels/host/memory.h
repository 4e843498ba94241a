/* memory.h: the device's memory in the host run, and pinned memory of the host. Each allocation
 * lies between pages that may not be touched, filled with 0xff, a NaN in every type; what is left
 * of its pages is marked, and looked at when it is freed. Freed memory may not be touched again:
 * its addresses are not given out twice. Device memory may be touched only while the device works
 * (memory_open ... memory_close): a host that looks into it crashes, as it would. */
#ifndef SGT_HOST_MEMORY_H
#define SGT_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

namespace host
{

enum Place { DEVICE, PINNED };

void *memory_new(size_t bytes, Place place); /* 256-byte aligned; NULL: there is none */
void memory_free(void *p, Place place);
uint64_t memory_used(); /* of the device */

/* Where all of the bytes lie; false where they are not, all of them, in one allocation. */
bool memory_at(const void *p, size_t bytes, Place *place);

/* Calls nest. */
void memory_open();
void memory_close();
void memory_close_all();

/* For a scope. */
struct MemoryOpen {
    MemoryOpen() { memory_open(); }
    ~MemoryOpen() { memory_close(); }
    MemoryOpen(const MemoryOpen &) = delete;
    MemoryOpen &operator=(const MemoryOpen &) = delete;
};

} /* namespace host */

#endif
