/* tokenize_peer.h: other tokenizers on the same texts, to stand beside ours in one run. */
#ifndef SGT_TOOLS_BENCH_TOKENIZE_PEER_H
#define SGT_TOOLS_BENCH_TOKENIZE_PEER_H

#include <stdint.h>

#include "base/error.h"
#include "input/corpus.h"

enum { TOKENIZE_PEERS = 2, TOKENIZE_TURNS = 100 };

typedef struct tokenize_peer {
    const char *kind; /* "gigatoken", "tiktoken" */
    int best;         /* its figure is its best turn, not the median */
    int left_out;     /* the interpreter lacks it */
    char name[64];    /* "gigatoken 0.10.0" */
    uint64_t tokens;
    double seconds[TOKENIZE_TURNS]; /* of each turn */
} tokenize_peer;

typedef struct tokenize_turn {
    const sgt_corpus *corpus;
    const char *const *inputs; /* what the corpus was listed from */
    size_t input_count;
    const char *python; /* for the peers */
    const char *cpu;    /* for ours: its level */
    /* a new name for what is written; NULL: nothing is, and the text is in memory already */
    const char *out;
    int threads; /* on so many of our cores */
    const sgt_stop *stop;
} tokenize_turn;

/* Turn number `turn` of tests/peers/bpe.py, which the program carries within it: every file of the
 * corpus. Without `out` the texts are read before its clock starts, with it the whole process
 * counts. SGT_EUNSUPPORTED, with the last line that it said, where it fails. */
int bench_tokenize_peer(tokenize_peer *p, int turn, const tokenize_turn *t, sgt_error *err);

/* The sgt-tokenize beside this program, from the inputs to `out`: the whole process. */
int bench_tokenize_ours(double *seconds, uint64_t *tokens, const tokenize_turn *t, sgt_error *err);

#endif
