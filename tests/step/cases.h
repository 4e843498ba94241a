/* cases.h: the cases of check-step, in their order. */
#ifndef SGT_STEP_CASES_H
#define SGT_STEP_CASES_H

#include "check-step.h"

typedef struct step_case {
    const char *name;
    void (*body)(step_check *s);
    int precisions; /* bit p: runs in precision p */
    int cuda_only;
    int by_name; /* runs where --case asks for it */
} step_case;

extern const step_case step_cases[]; /* ended by a zeroed one */

/* documents.c */
void documents(step_check *s);

/* curves.c: 200 steps on end, fewer where --steps says so */
void curve_plain(step_check *s);
void curve_odd(step_check *s);
void curve_deep(step_check *s);

#endif
