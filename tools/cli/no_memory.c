/* no_memory.c: implements no_memory.h. These functions allocate no memory. They do not flush
 * stdout's buffer, because it may hold an incomplete result. */
#include "tools/cli/no_memory.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/cli/options.h"

static const char *program = "sgt";

void sgt_no_memory(void)
{
    static const char text[] = ": out of memory\n";
    struct iovec parts[] = {{(void *)(uintptr_t)program, strlen(program)},
                            {(void *)(uintptr_t)text, sizeof text - 1}};
    (void)!writev(STDERR_FILENO, parts, 2);
    _exit(SGT_EXIT_FAILED);
}

static void *take(size_t n)
{
    void *p = malloc(n);
    if (!p && n) sgt_no_memory();
    return p;
}

void sgt_end_without_memory(const char *name)
{
    program = name;
    json_set_alloc_funcs(take, free);
}
