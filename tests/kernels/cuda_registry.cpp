/* cuda_registry.cpp: the list of CUDA cases. */
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
