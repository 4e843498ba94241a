/* tokenize_ways.h: the rows of sgt-bench tokenize that split in another way: a pattern with a name
 * (tokenize/text/rules.h) by PCRE2, and the same vocabulary by GPT-2's pattern. */
#ifndef SGT_BENCH_TOKENIZE_WAYS_H
#define SGT_BENCH_TOKENIZE_WAYS_H

#include <jansson.h>

#include "tokenize/sgt_tokenize.h"
#include "tools/bench/tokenize_peer.h"

typedef struct tokenize_way {
    const char *name;
    sgt_vocab *vocab;
    uint64_t tokens;
    double seconds[TOKENIZE_TURNS]; /* at first each turn's, then the median in the first */
} tokenize_way;

typedef struct tokenize_ways {
    tokenize_way all[2];
    int count;
} tokenize_ways;

/* Load the other ways to split by the pattern of v, which was loaded from `path`: none if it has no
 * name. The caller frees w, which is zero, also after a failure. */
int bench_tokenize_ways(tokenize_ways *w, const sgt_vocab *v, const char *path, sgt_error *err);
void bench_tokenize_ways_free(tokenize_ways *w);

/* Put each way's median in its first place. */
void bench_tokenize_ways_settle(tokenize_ways *w, int turns);

/* Add them to a document, beside ours: bytes of text in so many seconds. */
void bench_tokenize_ways_add(json_t *top, const tokenize_ways *w, uint64_t bytes, double seconds);

#endif
