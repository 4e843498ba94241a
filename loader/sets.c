/* sets.c: the sets that a loader draws from: parse their names, and join their shards into one
 * list. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/handle.h"

/* ---- texts ---- */

static uint32_t count_commas(const char *text)
{
    uint32_t n = 0;
    for (; *text; text++) n += *text == ',';
    return n;
}

/* Parse "DIR" or "DIR:WEIGHT" into `set`, and end `part` at the colon. */
static int parse_part(sgt_loader_set *set, char *part, const char *text, sgt_error *err)
{
    char *colon = strrchr(part, ':'), *end = NULL;
    set->path = part;
    if (!*part)
        return sgt_fail(err, SGT_EUSAGE, "%s: a set without a name (commas separate sets)", text);
    if (!colon || access(part, F_OK) == 0) return SGT_OK;
    double weight = strtod(colon + 1, &end);
    /* not a number, so the colon belongs to the path */
    if (end == colon + 1 || *end) return SGT_OK;
    if (colon == part) return sgt_fail(err, SGT_EUSAGE, "%s: a weight without a set", part);
    if (!sgt_mix_weight(weight))
        return sgt_fail(err, SGT_EUSAGE, "%s: the weight must be a number from %g to %g", part,
                        SGT_MIX_LEAST, SGT_MIX_MOST);
    set->weight = weight;
    *colon = '\0';
    return SGT_OK;
}

static int all_or_none(const sgt_loader_set *sets, uint32_t n, sgt_error *err)
{
    for (uint32_t i = 1; i < n; i++)
        if ((sets[i].weight != 0) != (sets[0].weight != 0))
            return sgt_fail(err, SGT_EUSAGE,
                            "%s has %s weight, and %s has %s: all sets have one, or none has",
                            sets[0].path, sets[0].weight != 0 ? "a" : "no", sets[i].path,
                            sets[0].weight != 0 ? "none" : "one");
    return SGT_OK;
}

int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err)
{
    if (!text) return sgt_fail(err, SGT_EUSAGE, "NULL instead of a text that names sets");
    size_t bytes = strlen(text) + 1;
    int whole = access(text, F_OK) == 0;
    uint32_t n = whole ? 1 : count_commas(text) + 1;
    if (n > SGT_MIX_SETS)
        return sgt_fail(err, SGT_EUSAGE, "%" PRIu32 " sets: at most %u can be mixed", n,
                        SGT_MIX_SETS);
    /* one allocation: the list, then its texts */
    sgt_loader_set *got = calloc(1, n * sizeof *got + bytes);
    if (!got) return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " sets: out of memory", n);
    char *part = memcpy(got + n, text, bytes);
    int rc = SGT_OK;
    for (uint32_t i = 0; i < n && rc == SGT_OK; i++) {
        char *comma = whole ? NULL : strchr(part, ',');
        if (comma) *comma = '\0';
        rc = parse_part(&got[i], part, text, err);
        if (comma) part = comma + 1;
    }
    if (rc == SGT_OK) rc = all_or_none(got, n, err);
    if (rc < 0) {
        free(got);
        return rc;
    }
    *sets = got;
    *count = n;
    return SGT_OK;
}

void sgt_loader_sets_free(sgt_loader_set *sets) { free(sets); }

/* ---- opening ---- */

static int check_sets(const sgt_loader_set *sets, uint32_t n, sgt_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!sets[i].path) return sgt_fail(err, SGT_EUSAGE, "set %" PRIu32 " has no path", i);
        if (sets[i].weight != 0 && !sgt_mix_weight(sets[i].weight))
            return sgt_fail(err, SGT_EUSAGE, "%s:%g: the weight must be a number from %g to %g",
                            sets[i].path, sets[i].weight, SGT_MIX_LEAST, SGT_MIX_MOST);
    }
    return all_or_none(sets, n, err);
}

static int open_part(sgt_loader *l, const sgt_loader_set *from, sgt_error *err)
{
    sgt_set set;
    sgt_loader_part *p = &l->parts[l->part_count];
    if (!(p->path = strdup(from->path))) return sgt_fail_memory(err, from->path);
    l->part_count++;
    int rc = sgt_set_open(&set, from->path, &l->o, err);
    if (rc < 0) return rc;
    p->weight = from->weight;
    p->tokens = set.tokens;
    p->hash = set.hash;
    p->first = l->set.count;
    p->shards = set.count;
    p->skipped = set.skipped;
    return sgt_set_append(&l->set, &set, err);
}

/* Refuse two names of one folder: its windows would be drawn twice as often as the user meant. */
static int all_different(const sgt_loader *l, sgt_error *err)
{
    struct stat *st = calloc(l->part_count, sizeof *st);
    int rc =
        st ? SGT_OK : sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " sets: out of memory", l->part_count);
    for (uint32_t i = 0; i < l->part_count && rc == SGT_OK; i++) {
        const sgt_loader_part *p = &l->parts[i];
        const char *first = l->set.shards[p->first].path;
        if (stat(first, &st[i]) < 0) rc = sgt_fail_errno(err, "%s", first);
        for (uint32_t j = 0; j < i && rc == SGT_OK; j++)
            if (st[j].st_dev == st[i].st_dev && st[j].st_ino == st[i].st_ino &&
                p->shards == l->parts[j].shards)
                rc = sgt_fail(err, SGT_EUSAGE,
                              "%s: the same set as %s (a larger weight draws more of it)", p->path,
                              l->parts[j].path);
    }
    free(st);
    return rc;
}

/* Hash the sets' hashes and weights. Weights are divided by their greatest common divisor, so that
 * equal proportions give equal hashes. */
static int hash_sets(sgt_loader *l, sgt_error *err)
{
    uint64_t divisor = 0;
    size_t n = l->part_count;
    uint64_t *words = calloc(n, 2 * sizeof *words);
    if (!words) return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " sets: out of memory", l->part_count);
    for (size_t i = 0; i < n; i++) {
        words[2 * i] = l->parts[i].hash;
        words[2 * i + 1] = sgt_mix_billionths(l->parts[i].weight);
        divisor = sgt_mix_divisor(words[2 * i + 1], divisor);
    }
    for (size_t i = 0; i < n && divisor; i++) words[2 * i + 1] /= divisor;
    l->set.hash = n == 1 ? words[0] : XXH3_64bits(words, n * 2 * sizeof *words);
    free(words);
    return SGT_OK;
}

int sgt_loader_open_sets(sgt_loader *l, const char *path, sgt_error *err)
{
    const sgt_loader_set one = {.path = path}, *sets = l->o.set_count ? l->o.sets : &one;
    uint32_t n = l->o.set_count ? l->o.set_count : 1;
    if (!path && !l->o.set_count)
        return sgt_fail(err, SGT_EUSAGE, "neither a path nor sets are given");
    if (!sets)
        return sgt_fail(err, SGT_EUSAGE,
                        "sgt_loader_options.sets is NULL, but set_count is %" PRIu32, n);
    if (n > SGT_MIX_SETS)
        return sgt_fail(err, SGT_EUSAGE, "%" PRIu32 " sets: at most %u can be mixed", n,
                        SGT_MIX_SETS);
    int rc = check_sets(sets, n, err);
    if (rc < 0) return rc;
    if (!(l->parts = calloc(n, sizeof *l->parts)))
        return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " sets: out of memory", n);
    for (uint32_t i = 0; i < n && rc == SGT_OK; i++) rc = open_part(l, &sets[i], err);
    if (rc == SGT_OK && n > 1) rc = all_different(l, err);
    return rc < 0 ? rc : hash_sets(l, err);
}

void sgt_loader_close_sets(sgt_loader *l)
{
    for (uint32_t i = 0; i < l->part_count; i++) free(l->parts[i].path);
    free(l->parts);
    sgt_set_close(&l->set);
}

/* ---- what they are ---- */

void sgt_loader_get_set(const sgt_loader *l, uint32_t set, sgt_loader_set_info *info)
{
    const sgt_loader_part *p = &l->parts[set];
    double all = (double)l->mix.shares_before[l->part_count];
    *info = (sgt_loader_set_info){.path = p->path,
                                  .weight = p->weight,
                                  .share = (double)sgt_mix_share(&l->mix, set) / all,
                                  .tokens = p->tokens,
                                  .shards = p->shards,
                                  .skipped = p->skipped,
                                  .windows_per_epoch = l->mix.samplers[set].windows,
                                  .hash = p->hash};
}

uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows)
{
    return sgt_mix_drawn(&l->mix, set, rows);
}

uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard)
{
    return sgt_mix_set_of(&l->mix, shard);
}
