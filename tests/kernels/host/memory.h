/* memory.h: the device memory and pinned memory of the host run. Each allocation lies between
 * inaccessible pages and is filled with 0xff, a NaN in every type. The unused bytes of its pages
 * are marked, and checked when the allocation is freed. Addresses of freed memory are not used
 * again, so an access to them crashes. Device memory may be accessed only while the device works
 * (memory_open ... memory_close). If the host reads it at other times, the host crashes, as it
 * would with a GPU. */
#ifndef SGT_HOST_MEMORY_H
#define SGT_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

namespace host
{

enum Place { DEVICE, PINNED };

void *memory_new(size_t bytes, Place place); /* 256-byte aligned; NULL: out of memory */
void memory_free(void *p, Place place);
uint64_t memory_used(); /* bytes of device memory in use */

/* Set *place to the kind of memory that has these bytes, device or pinned. Return false unless all
 * of them are in one allocation. */
bool memory_at(const void *p, size_t bytes, Place *place);

/* Calls nest. */
void memory_open();
void memory_close();

/* Keeps device memory open for the scope of this object. */
struct MemoryOpen {
    MemoryOpen() { memory_open(); }
    ~MemoryOpen() { memory_close(); }
    MemoryOpen(const MemoryOpen &) = delete;
    MemoryOpen &operator=(const MemoryOpen &) = delete;
};

} /* namespace host */

#endif
