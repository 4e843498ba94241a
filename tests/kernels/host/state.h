/* state.h: what the files of the host run share and kernels do not see. */
#ifndef SGT_HOST_STATE_H
#define SGT_HOST_STATE_H

#include <random>

#include "tests/kernels/host/host.h"

namespace host
{

/* ---- run.cpp ---- */

/* Vector clocks per warp and, within a warp, an epoch that its own synchronisations raise: what
 * barriers order, race mode compares by. Cheap enough to be kept always. */
struct Order {
    uint32_t clock[MAX_WARPS], epoch;
};
extern Order order[MAX_WARPS];
extern Thread threads[MAX_THREADS];
extern int warp_count, thread_count;
extern const char *kernel_name;
extern std::mt19937 random_bits;
extern long kernels_run; /* to their end, so far: those of a graph each time that it runs */
extern bool late_copies; /* this block's asynchronous copies land as late as its waits allow */

void join_clock(uint32_t *into, const uint32_t *from);
/* Call when a spinning thread has got what it waited for: resets the count of spins. */
void made_progress();

/* ---- smem.cpp: shared memory ---- */
void smem_begin(size_t dynamic); /* a block begins: every byte 0xff, a NaN in every type */
void smem_end();                 /* and ends: nothing was written beside its arrays */
bool in_smem(const void *p, size_t *offset); /* in the arena, whether the block has it or not */
bool owned_smem(size_t offset, size_t size);
constexpr size_t ARENA = 256 << 10;

/* ---- copies.cpp: what moves while the kernel goes on ---- */
void copies_begin();
void copies_end();        /* of the block */
void thread_copies_end(); /* of the current thread */

/* ---- wgmma.cpp ---- */
void wgmma_begin();
void wgmma_end(); /* of the block */

/* ---- race.cpp ---- */
void race_begin();
void race_start_copy(const void *p, size_t size);       /* in flight from here ... */
void race_land(const void *p, size_t size, bool async); /* ... to here */

} /* namespace host */

#endif
