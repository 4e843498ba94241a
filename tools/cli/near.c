/* near.c: finds known words that are similar to an unknown one: with the same beginning, or with
 * only a few typing errors. */
#include "tools/cli/near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

sgt_near sgt_near_to(const char *word, size_t length)
{
    size_t most = length < 5 ? 1 : length < 8 ? 2 : 3;
    return (sgt_near){.word = word, .length = length, .slips = most + 1};
}

static int differ(char a, char b) { return tolower((unsigned char)a) != tolower((unsigned char)b); }

/* Return the number of typing errors between a and b: how many letters must be inserted, deleted,
 * replaced or swapped with their neighbour to turn a into b. */
static size_t count_slips(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][SGT_NEAR_LENGTH + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++) last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (size_t)differ(a[i - 1], b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            int exchanged =
                i > 1 && j > 1 && !differ(a[i - 1], b[j - 2]) && !differ(a[i - 2], b[j - 1]);
            if (exchanged && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *free = before;
        before = last;
        last = row;
        row = free;
    }
    return last[m];
}

/* Find a part of `in`, which has dashes between its parts, that begins with `word`. Return 1 if it
 * is the first part, 2 if it is a later one, 0 if there is none. */
static int begins_part(const char *word, size_t n, const char *in, size_t m)
{
    for (size_t at = 0; at + n <= m; at++)
        if ((!at || in[at - 1] == '-') && !memcmp(in + at, word, n)) return at ? 2 : 1;
    return 0;
}

static void keep(struct sgt_near_words *list, const char *word, size_t length)
{
    if (list->count < SGT_NEAR_WORDS) {
        list->word[list->count] = word;
        list->length[list->count] = length;
    }
    list->count++;
}

void sgt_near_offer(sgt_near *n, const char *word, size_t length)
{
    if (n->length > SGT_NEAR_LENGTH || length > SGT_NEAR_LENGTH || !length) return;
    int where = n->length > 1 ? begins_part(n->word, n->length, word, length) : 0;
    if (where) keep(where == 1 ? &n->whole : &n->part, word, length);
    size_t slips = count_slips(n->word, n->length, word, length);
    /* if so many letters differ, none of the known word would remain */
    if (slips >= n->slips || slips >= length) return;
    n->slips = slips;
    n->nearest = word;
    n->nearest_length = length;
}

void sgt_near_offer_all(sgt_near *n, const char *words)
{
    for (const char *p = words; *p;) {
        size_t length = strcspn(p, "|, ");
        if (islower((unsigned char)*p) || isdigit((unsigned char)*p)) sgt_near_offer(n, p, length);
        p += length + (p[length] != 0);
    }
}

const char *sgt_near_hint(const sgt_near *n, const char *before, char hint[SGT_NEAR_HINT])
{
    const struct sgt_near_words *list = n->whole.count ? &n->whole : &n->part;
    size_t at = 0;
    hint[0] = 0;
    if (list->count && list->count <= SGT_NEAR_WORDS)
        for (size_t i = 0; i < list->count; i++)
            at += (size_t)snprintf(hint + at, SGT_NEAR_HINT - at, "%s%s%.*s",
                                   !i ? "; did you mean " : " or ", before, (int)list->length[i],
                                   list->word[i]);
    else if (n->nearest)
        at = (size_t)snprintf(hint, SGT_NEAR_HINT, "; did you mean %s%.*s", before,
                              (int)n->nearest_length, n->nearest);
    if (at) snprintf(hint + at, SGT_NEAR_HINT - at, "?");
    return hint;
}
