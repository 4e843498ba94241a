/* memory.cpp: see memory.h. Allocations between guard pages. */
#include "tests/kernels/host/memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "tests/kernels/host/host.h"

namespace host
{

constexpr size_t ALIGN = 256;
constexpr unsigned char MARK = 0xa5;

struct Allocation {
    unsigned char *pages;
    size_t mapped; /* bytes between the guards */
    size_t bytes;
    Place place;
};

static std::map<uintptr_t, Allocation> allocations; /* by address */
static uint64_t device_bytes;
static int open_depth;
/* memory is open although it should be closed, to save time (memory_close) */
static bool left_open;

static void protect(const Allocation &a)
{
    bool open = a.place == PINNED || open_depth > 0 || left_open;
    mprotect(a.pages, a.mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void *memory_new(size_t bytes, Place place)
{
    size_t page = (size_t)getpagesize(), room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    size_t mapped = (room + page - 1) / page * page;
    if (room < bytes || mapped < room) return nullptr;
    void *map = mmap(nullptr, mapped + 2 * page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return nullptr;
    Allocation a = {static_cast<unsigned char *>(map) + page, mapped, bytes, place};
    unsigned char *p = a.pages + mapped - room;
    mprotect(a.pages, mapped, PROT_READ | PROT_WRITE);
    memset(a.pages, MARK, mapped);
    memset(p, 0xff, bytes);
    protect(a);
    allocations[(uintptr_t)p] = a;
    if (place == DEVICE) device_bytes += bytes;
    return p;
}

/* Check that nothing was written between the guards and the allocation. */
static void check_marks(const unsigned char *p, const Allocation &a)
{
    for (const unsigned char *at = a.pages; at < a.pages + a.mapped; at++) {
        if (at == p) at += a.bytes;
        if (at < a.pages + a.mapped && *at != MARK)
            fail("byte %ld of an allocation of %zu bytes was written", (long)(at - p), a.bytes);
    }
}

void memory_free(void *p, Place place)
{
    auto found = allocations.find((uintptr_t)p);
    if (found == allocations.end() || found->second.place != place)
        fail("%p is freed, which is no %s memory", p, place == PINNED ? "pinned" : "device");
    Allocation a = found->second;
    MemoryOpen open;
    check_marks(static_cast<unsigned char *>(p), a);
    allocations.erase(found);
    madvise(a.pages, a.mapped, MADV_DONTNEED);
    mprotect(a.pages, a.mapped, PROT_NONE);
    if (place == DEVICE) device_bytes -= a.bytes;
}

uint64_t memory_used() { return device_bytes; }

bool memory_at(const void *p, size_t bytes, Place *place)
{
    auto after = allocations.upper_bound((uintptr_t)p);
    if (after == allocations.begin()) return false;
    const auto &found = *--after;
    size_t offset = (uintptr_t)p - found.first;
    *place = found.second.place;
    return offset <= found.second.bytes && bytes <= found.second.bytes - offset;
}

static void protect_all()
{
    for (const auto &a : allocations)
        if (a.second.place == DEVICE) protect(a.second);
}

/* Closing and opening memory again takes milliseconds if much is allocated, and programs do it for
 * each number that they fetch. So after the first closings, only one in 32 is really done. A host
 * that wrongly reads device memory is still found, because it does so repeatedly. */

void memory_open()
{
    if (open_depth++ == 0 && !left_open) protect_all();
}

void memory_close()
{
    static unsigned closings;
    if (--open_depth > 0) return;
    left_open = ++closings > 64 && closings % 32;
    if (!left_open) protect_all();
}

} /* namespace host */
