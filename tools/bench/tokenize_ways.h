/* tokenize_ways.h: the rows of sgt-bench tokenize that split text in another way. If the
 * vocabulary's pattern is one that our own code splits by (tokenize/text/rules.h), it is split by
 * PCRE2 too, and also by GPT-2's pattern. */
#ifndef SGT_BENCH_TOKENIZE_WAYS_H
#define SGT_BENCH_TOKENIZE_WAYS_H

#include <jansson.h>

#include "tokenize/sgt_tokenize.h"
#include "tools/bench/tokenize_peer.h"

typedef struct tokenize_way {
    const char *name;
    sgt_vocab *vocab;
    uint64_t tokens;
    /* seconds of each turn; once settled, the median is in seconds[0] */
    double seconds[TOKENIZE_TURNS];
} tokenize_way;

typedef struct tokenize_ways {
    tokenize_way all[2];
    int count;
} tokenize_ways;

/* Load the vocabularies of the other ways. v was loaded from `path`; there are no other ways if v's
 * pattern is not a known one. *w must be zero; the caller frees it, even after a failure. */
int bench_tokenize_ways(tokenize_ways *w, const sgt_vocab *v, const char *path, sgt_error *err);
void bench_tokenize_ways_free(tokenize_ways *w);

/* Put the median of each way's turns in seconds[0]. */
void bench_tokenize_ways_settle(tokenize_ways *w, int turns);

/* Add the ways to a JSON document. `bytes`: bytes of text; `seconds`: the time of ours. */
void bench_tokenize_ways_add(json_t *top, const tokenize_ways *w, uint64_t bytes, double seconds);

#endif
