/* mirror.cpp: keeps a list of buffers, each with its device copy and the content of that after the
 * last copy. */
#include "tests/kernels/device/mirror.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace
{

/* LOWER_HALF: the lower 32 bits of each buffer's address. A struct among the arguments may have a
 * number of 4 bytes followed by padding, and the padding may hold the upper half of an old pointer
 * into a buffer. If the number then equalled a pointer's lower half, mirror_translate would change
 * it. Numbers from LOWER_HALF on do not occur: as a float they are negative, and as an integer too
 * large. */
constexpr uintptr_t RANGE = (uintptr_t)1 << 32, LOWER_HALF = 0x80000000;

struct buffer {
    unsigned char *here, *there;
    /* met: the device's content after the last copy; seen: space for the next */
    unsigned char *met, *seen;
    size_t size, whole; /* whole: bytes of `here`, a multiple of the page size */
    bool fresh;         /* the device copy is still empty */
    buffer *next;
};

mirror_calls calls;
buffer *buffers;

unsigned char *map_here(size_t whole)
{
    void *p = mmap(nullptr, RANGE + whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    uintptr_t from = (uintptr_t)p, at = from + (LOWER_HALF - from) % RANGE;
    if (at > from) munmap(p, at - from);
    munmap((void *)(at + whole), from + RANGE - at);
    if (mprotect((void *)at, whole, PROT_READ | PROT_WRITE) == 0) return (unsigned char *)at;
    munmap((void *)at, whole);
    return nullptr;
}

/* Copy to the device the bytes that the test changed, from the first to the last. Return NULL, or
 * why it failed. */
const char *push(buffer *b)
{
    size_t from = 0, to = b->size;
    if (!b->fresh) {
        if (memcmp(b->here, b->met, b->size) == 0) return nullptr;
        while (b->here[from] == b->met[from]) from++;
        while (b->here[to - 1] == b->met[to - 1]) to--;
    }
    b->fresh = false;
    memcpy(b->met + from, b->here + from, to - from);
    return calls.copy(b->there + from, b->here + from, to - from);
}

/* Copy back only the bytes that kernels changed, because the test may have written others since the
 * last push. Return NULL, or why it failed. */
const char *pull(buffer *b)
{
    const char *why = b->fresh ? nullptr : calls.copy(b->seen, b->there, b->size);
    if (b->fresh || why || memcmp(b->seen, b->met, b->size) == 0) return why;
    for (size_t i = 0; i < b->size; i++)
        if (b->seen[i] != b->met[i]) b->here[i] = b->met[i] = b->seen[i];
    return nullptr;
}

void forget(buffer *b)
{
    if (b->here) munmap(b->here, b->whole);
    free(b->met);
    free(b->seen);
    if (b->there) calls.release(b->there);
    free(b);
}

} // namespace

mirror_calls mirror_open(const mirror_calls *c)
{
    mirror_calls before = calls;
    calls = *c;
    return before;
}

void *mirror_allocate(size_t size)
{
    size_t page = 65536, whole = (size + page) / page * page; /* at least one page */
    buffer *b = static_cast<buffer *>(calloc(1, sizeof *b));
    if (!b) return nullptr;
    *b = {map_here(whole),
          static_cast<unsigned char *>(calls.allocate(size)),
          static_cast<unsigned char *>(malloc(whole)),
          static_cast<unsigned char *>(malloc(whole)),
          size,
          whole,
          true,
          buffers};
    if (!b->here || !b->there || !b->met || !b->seen) {
        forget(b);
        return nullptr;
    }
    buffers = b;
    return b->here;
}

void mirror_release(void *p)
{
    for (buffer **at = &buffers; *at; at = &(*at)->next)
        if ((*at)->here == p) {
            buffer *b = *at;
            *at = b->next;
            forget(b);
            return;
        }
}

const char *mirror_push()
{
    const char *why = nullptr;
    for (buffer *b = buffers; b && !why; b = b->next) why = push(b);
    return why;
}

const char *mirror_pull()
{
    const char *why = nullptr;
    for (buffer *b = buffers; b && !why; b = b->next) why = pull(b);
    return why;
}

void *mirror_there(const void *p)
{
    uintptr_t at = (uintptr_t)p;
    for (buffer *b = buffers; b; b = b->next) {
        uintptr_t here = (uintptr_t)b->here;
        if (at >= here && at < here + (b->size ? b->size : 1)) return b->there + (at - here);
    }
    return const_cast<void *>(p);
}

void mirror_translate(void *bytes, size_t size)
{
    for (size_t i = 0; i + sizeof(void *) <= size; i += sizeof(void *)) {
        void *word;
        memcpy(&word, (char *)bytes + i, sizeof word);
        word = mirror_there(word);
        memcpy((char *)bytes + i, &word, sizeof word);
    }
}
