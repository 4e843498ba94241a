/* smem.cpp: a block's shared memory. Its dynamic part ends right before an inaccessible page, as
 * far as its alignment allows. Static arrays lie at lower addresses, each followed by a margin.
 * When the block ends, every margin must be unchanged. */
#include "tests/kernels/host/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace host
{

constexpr size_t SMEM_MAX = 227 << 10, STATIC_MAX = 48 << 10, ALIGN = 1024, MARGIN = 64;
enum { MAX_ARRAYS = 64, MARK = 0xA5 };

struct Array {
    const void *key;
    size_t from, size, room; /* start and size of the array; room: with the margin after it */
};

static unsigned char *arena;
static Array arrays[MAX_ARRAYS]; /* the first is dyn_smem() */
static int array_count;
static size_t static_end; /* static arrays are placed from the arena's start */

static void map_arena()
{
    size_t page = (size_t)getpagesize();
    void *map =
        mmap(nullptr, ARENA + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    arena = static_cast<unsigned char *>(map);
    mprotect(arena + ARENA, page, PROT_NONE);
}

static Array &add_array(const void *key, size_t from, size_t size, size_t room)
{
    if (array_count == MAX_ARRAYS) fail("more than %d arrays in shared memory", (int)MAX_ARRAYS);
    memset(arena + from, 0xff, size);
    memset(arena + from + size, MARK, room - size);
    arrays[array_count] = Array{key, from, size, room};
    return arrays[array_count++];
}

void smem_begin(size_t dynamic)
{
    if (!arena) map_arena();
    if (dynamic > SMEM_MAX) fail("%zu bytes of shared memory, of at most %zu", dynamic, SMEM_MAX);
    size_t room = (dynamic + ALIGN - 1) / ALIGN * ALIGN;
    array_count = 0;
    static_end = 0;
    add_array(nullptr, ARENA - room, dynamic, room);
}

void smem_end()
{
    for (int i = 0; i < array_count; i++)
        for (size_t j = arrays[i].size; j < arrays[i].room; j++)
            if (arena[arrays[i].from + j] != MARK)
                fail("wrote %zu bytes past the start of a shared array of %zu bytes", j,
                     arrays[i].size);
}

unsigned char *dyn_smem() { return arena + arrays[0].from; }

void *static_smem(const void *key, size_t size)
{
    for (int i = 1; i < array_count; i++)
        if (arrays[i].key == key) return arena + arrays[i].from;
    size_t room = (size + MARGIN + 15) / 16 * 16;
    static_end += room;
    if (static_end > STATIC_MAX) fail("more shared memory than there is: %zu bytes", static_end);
    /* On a device, static arrays would use up 1 KiB of what a launch may ask for, because
     * dyn_smem() begins at a multiple of it. */
    if (arrays[0].size)
        fail("arrays in shared memory beside %zu bytes of dyn_smem()", arrays[0].size);
    return arena + add_array(key, static_end - room, size, room).from;
}

bool in_smem(const void *p, size_t *offset)
{
    *offset = (size_t)((uintptr_t)p - (uintptr_t)arena);
    return arena && *offset < ARENA;
}

bool owned_smem(size_t offset, size_t size)
{
    for (int i = 0; i < array_count; i++)
        if (offset >= arrays[i].from && offset + size <= arrays[i].from + arrays[i].size)
            return true;
    return false;
}

uint32_t smem_address(const void *p, size_t size, size_t align, const char *what)
{
    size_t offset;
    if (!in_smem(p, &offset) || !owned_smem(offset, size))
        fail("%s: address outside shared memory", what);
    if (offset % align) fail("%s: address in shared memory not %zu-byte aligned", what, align);
    return (uint32_t)offset;
}

unsigned char *smem_at(uint32_t address)
{
    if (!owned_smem(address, 1)) fail("address %u outside shared memory", address);
    return arena + address;
}

} /* namespace host */
