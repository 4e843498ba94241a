/* plan.h: what both halves of `faults` understand (faults.c: the tracer, which sees system calls;
 * shim.c: the preloaded library, which sees what is no system call). See faults.c for the
 * language. */
#ifndef SGT_FAULTS_PLAN_H
#define SGT_FAULTS_PLAN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* At which calls: the first is 1; 0: none, they are counted alone. */
typedef struct fault_place {
    uint64_t first;
    int further; /* "+": and at all that follow */
} fault_place;

/* What the shim counts, in memory that the tracer's process shares with it. */
typedef struct fault_counts {
    uint64_t seen, hits;
} fault_counts;

static inline fault_place fault_place_of(const char *text)
{
    char *end = NULL;
    fault_place p = {text ? strtoull(text, &end, 10) : 0, 0};
    p.further = end && *end == '+';
    return p;
}

/* Whether call number n is disturbed. */
static inline int fault_is_at(const fault_place *p, uint64_t n)
{
    return p->first && (n == p->first || (p->further && n > p->first));
}

#endif
