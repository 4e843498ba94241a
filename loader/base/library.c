/* library.c: dlopen and dlsym. */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

#include "error.h"

void *sgt_library_open(const char *const *names, size_t count, char *why, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
        if (!i) sgt_printable(why, n, dlerror());
    }
    return NULL;
}

const char *sgt_library_look_up(void *library, const sgt_symbol *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found) return symbols[i].name;
        memcpy(symbols[i].to, &found, sizeof found);
    }
    return NULL;
}
