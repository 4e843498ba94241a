#include "tests/expect.h"
#include "tests/tokenize/splits.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tests/tokenize/common.h"
#include "tokenize/text/split_blocks.h"

#define MANY 400
#define UNTOUCHED 0xABADCAFEu

const char *const *split_levels(void)
{
    static const char *list[SGT_CPU_LEVELS + 1];
    for (int i = 0; i <= (int)sgt_cpu(); i++) list[i] = sgt_cpu_names[i];
    if (sgt_cpu_neon()) list[SGT_CPU_PLAIN + 1] = "auto"; /* NEON is no level with a name */
    return list;
}

size_t pieces_by(const sgt_rule *r, const char *level, const sgt_cuts *cuts, const uint8_t *s,
                 size_t n, size_t most, size_t *ends)
{
    uint32_t some[MANY + 1];
    size_t count = 0, got, from;
    const int ref = !strcmp(level, "ref");
    must(sgt_cpu_limit(ref ? "auto" : level, why));
    sgt_splitter sp = sgt_splitter_by(r, s, n);
    if (ref) sp.split = sgt_split_hard, sp.hard = n;
    sp.cuts = cuts;
    must(sgt_cpu_limit("auto", why));
    some[most] = UNTOUCHED;
    while ((from = sp.at, got = sgt_split(&sp, some, most)) > 0) {
        cr_assert(got <= most && count + got <= n, "%s: %zu pieces at %zu of %zu", level, got, from,
                  n);
        for (size_t i = 0; i < got; i++) ends[count++] = from + some[i];
        cr_assert_eq(ends[count - 1], sp.at, "%s: stands at the last end", level);
    }
    cr_assert_eq(some[most], UNTOUCHED, "%s: writes beyond what it was given", level);
    cr_assert_eq(sgt_split(&sp, some, most), 0, "%s: the end stays the end", level);
    return count;
}

sgt_pattern *pattern_of(const sgt_rule *r)
{
    sgt_pattern *p = NULL;
    must(sgt_pattern_new(&p, r ? r->text : SGT_PIECE_RULE, why));
    return p;
}

size_t pieces_by_pattern(sgt_pattern *p, const uint8_t *s, size_t n, size_t *ends)
{
    sgt_error err;
    sgt_splitter sp = sgt_pattern_splitter(p, s, n, &err);
    uint32_t some[3];
    size_t count = 0, got, from;
    while ((from = sp.at, got = sgt_split(&sp, some, 1 + count % 3)) > 0)
        for (size_t i = 0; i < got; i++) ends[count++] = from + some[i];
    cr_assert_eq(sp.at, n, "%s", err.text);
    return count;
}

void hold_levels(const sgt_rule *r, const uint8_t *s, size_t n, size_t most, const size_t *want,
                 size_t count, const char *what)
{
    const char *const *levels = split_levels(), *level = r ? "ref" : *levels++;
    scoped_memory size_t *ours = malloc((n + 1) * sizeof *ours);
    cr_assert(ours);
    for (; level; level = *levels++)
        for (int many = n <= most; many < 2;
             /* if one call has room for all pieces, both rounds are the same: skip the first */
             many++) {
            size_t have = pieces_by(r, level, NULL, s, n, many ? MANY : most, ours), i = 0;
            if (have == count && !memcmp(ours, want, count * sizeof *want)) continue;
            while (i < have && i < count && ours[i] == want[i]) i++;
            char hex[1024] = "";
            size_t from = i ? want[i - 1] : 0, shown = from > 80 ? from - 80 : 0;
            for (size_t k = shown; k < n && k < shown + 160; k++)
                sprintf(hex + 2 * (k - shown), "%02x", s[k]);
            cr_assert_fail("%s, %s, %s: piece %zu of %zu bytes ends at %zu, not %zu; "
                           "from byte %zu: %s",
                           r ? r->text : "gpt2", what, level, i, n, i < have ? ours[i] : 0,
                           i < count ? want[i] : 0, shown, hex);
        }
}
