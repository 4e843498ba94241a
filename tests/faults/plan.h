/* plan.h: the plan, shared by both halves of `faults`: faults.c, the tracer, which catches system
 * calls; and shim.c, the preloaded library, which catches other calls. faults.c describes the
 * language. */
#ifndef SGT_FAULTS_PLAN_H
#define SGT_FAULTS_PLAN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Which calls to disturb. first: number of the first one, counted from 1; 0: disturb none, only
 * count. */
typedef struct fault_place {
    uint64_t first;
    int further; /* 1 if the plan has a "+": also disturb all later calls */
} fault_place;

/* The shim's counts, in memory shared with the tracer's process. */
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

/* Return whether call number n is disturbed. */
static inline int fault_is_at(const fault_place *p, uint64_t n)
{
    return p->first && (n == p->first || (p->further && n > p->first));
}

#endif
