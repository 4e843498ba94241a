/* list.cpp: write the file of the list mode. */
#include "tests/kernels/host/list.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/host/streams.h"

namespace host
{

static FILE *file()
{
    static FILE *f;
    static bool asked;
    const char *path = asked ? nullptr : getenv("SGT_HOST_LIST");
    asked = true;
    if (!path) return f;
    f = fopen(path, "w");
    if (!f) fail("SGT_HOST_LIST: %s cannot be written", path);
    event_clock = 0;
    return f;
}

bool listing() { return file() != nullptr; }

void list_line(cudaStream_t s, const char *fmt, ...)
{
    va_list args;
    enqueue(s, [] { event_clock += 1e-6; });
    va_start(args, fmt);
    vfprintf(file(), fmt, args);
    va_end(args);
    putc('\n', file());
    if (fflush(file()) == EOF) fail("SGT_HOST_LIST: the list cannot be written");
}

void list_copy(cudaStream_t s, void *to, size_t bytes, bool to_host)
{
    if (to_host) enqueue(s, [=] { memset(to, 0, bytes); });
    list_line(s, "copy %zu", bytes);
}

void list_kernel(cudaStream_t s, const void *kernel, dim3 grid, dim3 block, size_t smem,
                 const std::string &arguments)
{
    Dl_info where;
    if (!dladdr(kernel, &where)) fail("SGT_HOST_LIST: a kernel that is in no library");
    size_t at = (size_t)((uintptr_t)kernel - (uintptr_t)where.dli_fbase);
    list_line(s, "kernel +%zx grid %u %u %u block %u smem %zu :%s", at, grid.x, grid.y, grid.z,
              block.x * block.y * block.z, smem, arguments.c_str());
}

} /* namespace host */
