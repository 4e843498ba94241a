/* tokenize_ways.c: measures other ways to split text, for comparison in sgt-bench tokenize. */
#include "tools/bench/tokenize_ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/vocab/vocab.h"
#include "tools/bench/bench.h"

static int add(tokenize_ways *w, const char *name, const char *path, const char *pattern,
               sgt_error *err)
{
    tokenize_way *next = &w->all[w->count++];
    next->name = name;
    return sgt_vocab_load(&next->vocab, path, pattern, err);
}

/* A pattern in brackets is not among the known ones, so PCRE2 splits by it. */
int bench_tokenize_ways(tokenize_ways *w, const sgt_vocab *v, const char *path, sgt_error *err)
{
    if (!sgt_vocab_known_rule(v)) return SGT_OK;
    const size_t room = strlen(sgt_vocab_rule(v)) + sizeof "(?:)";
    char *bracketed = malloc(room);
    if (!bracketed) return sgt_fail_memory(err, NULL);
    snprintf(bracketed, room, "(?:%s)", sgt_vocab_rule(v));
    int rc = add(w, "the same by PCRE2", path, bracketed, err);
    free(bracketed);
    return rc == SGT_OK ? add(w, "by GPT-2's pattern", path, "gpt2", err) : rc;
}

void bench_tokenize_ways_free(tokenize_ways *w)
{
    for (int i = 0; i < w->count; i++) sgt_vocab_free(w->all[i].vocab);
}

void bench_tokenize_ways_settle(tokenize_ways *w, int turns)
{
    for (int i = 0; i < w->count; i++)
        w->all[i].seconds[0] = bench_median(w->all[i].seconds, (size_t)turns);
}

void bench_tokenize_ways_add(json_t *top, const tokenize_ways *w, uint64_t bytes, double seconds)
{
    json_t *all = json_array();
    for (int i = 0; i < w->count; i++) {
        const tokenize_way *way = &w->all[i];
        const double s = way->seconds[0];
        json_array_append_new(all,
                              json_pack("{s:s, s:I, s:f, s:f, s:f}", "split", way->name, "tokens",
                                        (json_int_t)way->tokens, "seconds", s, "mb_per_s",
                                        (double)bytes / s * 1e-6, "ratio", s / seconds));
    }
    json_object_set_new(top, "ways", all);
}
