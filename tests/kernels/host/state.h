/* state.h: declarations that the files of the host run share, and that kernels do not see. */
#ifndef SGT_HOST_STATE_H
#define SGT_HOST_STATE_H

#include <random>

#include "tests/kernels/host/host.h"

namespace host
{

/* ---- run.cpp ---- */

/* Vector clock of a warp, and an epoch that increases when the warp synchronizes. Race mode uses
 * both to order accesses. They are maintained even without race mode, because they cost little. */
struct Order {
    uint32_t clock[MAX_WARPS], epoch;
};
extern Order order[MAX_WARPS];
extern Thread threads[MAX_THREADS];
extern int warp_count, thread_count;
extern const char *kernel_name;
extern std::mt19937 random_bits;
extern bool late_copies; /* asynchronous copies of this block are done as late as its waits allow */

void join_clock(uint32_t *into, const uint32_t *from);
/* Call this when a spinning thread got what it waited for. It resets the count of spins. */
void made_progress();

/* ---- fault.cpp ---- */
/* Return whether only the first row of a grid's blocks runs (SGT_HOST_FAULT). */
bool first_only(const char *kernel);

/* ---- smem.cpp: shared memory ---- */
/* Begin a block: fill all bytes of shared memory with 0xff, a NaN in every type. */
void smem_begin(size_t dynamic);
void smem_end(); /* end a block: check that nothing was written outside its arrays */
/* Return whether p is in the arena of shared memory, even if the block does not own it. */
bool in_smem(const void *p, size_t *offset);
bool owned_smem(size_t offset, size_t size);
constexpr size_t ARENA = 256 << 10;

/* ---- copies.cpp: asynchronous copies ---- */
void copies_begin();
void copies_end();        /* at the end of the block */
void thread_copies_end(); /* at the end of the current thread */

/* ---- wgmma.cpp ---- */
void wgmma_begin();
void wgmma_end(); /* at the end of the block */

/* ---- race.cpp ---- */
void race_begin();
void race_start_copy(const void *p, size_t size);       /* from now on, a copy to p is in flight */
void race_land(const void *p, size_t size, bool async); /* a copy to p has arrived */

} /* namespace host */

#endif
