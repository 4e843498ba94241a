/* option.c: check that an option's value is one of its permitted words or within its bounds. */
#include "loader/base/option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *sgt_option_value(const sgt_option *o, char buf[SGT_OPTION_VALUE])
{
    size_t at = 0;
    if (o->value || o->kind != SGT_OPT_WORD) return o->value;
    buf[0] = '\0';
    for (int i = 0; o->choices[i] && at < SGT_OPTION_VALUE; i++)
        at +=
            (size_t)snprintf(buf + at, SGT_OPTION_VALUE - at, "%s%s", i ? "|" : "", o->choices[i]);
    return buf;
}

int sgt_option_word(const sgt_option *o, const char *word, size_t n)
{
    char buf[SGT_OPTION_VALUE];
    int i = 0;
    for (const char *p = sgt_option_value(o, buf); *p; i++) {
        size_t m = strcspn(p, "|");
        if (m == n && memcmp(p, word, n) == 0) return i;
        p += m + (p[m] == '|');
    }
    return -1;
}

int sgt_option_check(const sgt_option *o, double x, const char *shown, sgt_error *err)
{
    if (!(o->max > o->min)) return SGT_OK;
    if (o->below) {
        if ((float)x >= (float)o->min && (float)x < (float)o->max) return SGT_OK;
        return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be at least %.16g and below %.16g", o->name,
                        shown, o->min, o->max);
    }
    if (isfinite(x) && x >= o->min && x <= o->max) return SGT_OK;
    if (isinf(o->max))
        return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be at least %.16g", o->name, shown, o->min);
    return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be from %.16g to %.16g", o->name, shown, o->min,
                    o->max);
}
