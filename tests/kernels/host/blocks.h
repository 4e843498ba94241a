/* blocks.h: which blocks of a grid run, for tests of index arithmetic: a grid over 2^32 numbers
 * would take the host hours, but its first and last blocks have the smallest and the largest
 * offsets.
 *
 *     {
 *         host::OnlyEdges edges(0, 1);       // the last block of every grid, until the end of this scope
 *         sgt_cuda_gelu(...);
 *     } */
#ifndef SGT_HOST_BLOCKS_H
#define SGT_HOST_BLOCKS_H

#include <stddef.h>

namespace host
{

struct Edges {
    size_t first, last; /* blocks in the order x, y, z; with neither, all run */
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
