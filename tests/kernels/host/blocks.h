/* blocks.h: selects which blocks of a grid run, for tests of index arithmetic. On the host, a grid
 * over 2^32 numbers would take hours. Its first and last blocks suffice, because they have the
 * smallest and the largest offsets.
 *
 *     {
 *         host::OnlyEdges edges(0, 1); // until the end of this scope, the last block of a grid
 *         sgt_cuda_gelu(...);
 *     } */
#ifndef SGT_HOST_BLOCKS_H
#define SGT_HOST_BLOCKS_H

#include <stddef.h>

namespace host
{

struct Edges {
    /* number of blocks that run at the start and at the end of the grid, in the order x, y, z; both
     * 0: all blocks run */
    size_t first, last;
};
extern Edges edges;

struct OnlyEdges {
    OnlyEdges(size_t first, size_t last) { edges = {first, last}; }
    ~OnlyEdges() { edges = {0, 0}; }
    OnlyEdges(const OnlyEdges &) = delete;
    OnlyEdges &operator=(const OnlyEdges &) = delete;
};

} // namespace host

#endif
