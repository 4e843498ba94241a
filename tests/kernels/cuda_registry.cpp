/* cuda_registry.cpp: the list of the CUDA cases, for each program that runs them. */
#include <string.h>

#include "tests/kernels/host/check-cuda.h"

static cuda_case *first;

/* In the order of their names: linking must not change what runs when. */
cuda_case::cuda_case(const char *name_, void (*body_)(check *t))
    : name(name_), body(body_), next(nullptr)
{
    cuda_case **at = &first;
    while (*at && strcmp((*at)->name, name) < 0) at = &(*at)->next;
    next = *at;
    *at = this;
}

const cuda_case *cuda_first_case() { return first; }
