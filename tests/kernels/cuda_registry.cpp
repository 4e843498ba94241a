/* cuda_registry.cpp: the list of CUDA cases, and the options, for each program that runs them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/host/check-cuda.h"

static cuda_case *first;

/* Insert the case by its name, so that the order of linking does not change the order of cases. */
cuda_case::cuda_case(const char *name_, void (*body_)(check *t))
    : name(name_), body(body_), next(nullptr)
{
    cuda_case **at = &first;
    while (*at && strcmp((*at)->name, name) < 0) at = &(*at)->next;
    next = *at;
    *at = this;
}

const cuda_case *cuda_first_case() { return first; }

int cuda_usage(const char *usage, const char *what, const char *arg)
{
    fprintf(stderr, "%.*s: %s: %s (%s)\n", (int)strcspn(usage, " "), usage, arg, what, usage);
    return 2;
}

int cuda_parse(const cuda_option *options, const char *usage, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const cuda_option *o = options;
        while (o->name && strcmp(o->name, argv[i])) o++;
        if (!o->name) return cuda_usage(usage, "unknown option", argv[i]);
        if (o->flag) {
            *o->flag = true;
            continue;
        }
        if (++i == argc) return cuda_usage(usage, "needs a value", o->name);
        if (o->word) {
            *o->word = argv[i];
            continue;
        }
        char *end;
        errno = 0;
        *o->number = strtoull(argv[i], &end, 10);
        if (errno || *end || end == argv[i] || argv[i][0] == '-')
            return cuda_usage(usage, "not a number", argv[i]);
    }
    return 0;
}
