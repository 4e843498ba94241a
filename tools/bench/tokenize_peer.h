/* tokenize_peer.h: other tokenizers on the same texts, to stand beside ours in one run. */
#ifndef SGT_TOOLS_BENCH_TOKENIZE_PEER_H
#define SGT_TOOLS_BENCH_TOKENIZE_PEER_H

#include <stdint.h>

#include "base/error.h"
#include "corpus.h"

enum { TOKENIZE_PEERS = 2, TOKENIZE_TURNS = 100 };

typedef struct tokenize_peer {
    const char *kind; /* "gigatoken", "tiktoken" */
    int best;         /* its figure is its best turn, not the median */
    int left_out;     /* the interpreter lacks it */
    char name[64];    /* "gigatoken 0.10.0" */
    uint64_t tokens;
    double seconds[TOKENIZE_TURNS]; /* of each turn */
} tokenize_peer;

/* One turn of tests/peers/bpe.py, which the program carries within it: every file of the corpus, on `threads` of our
 * cores. The texts are read before its clock starts. SGT_EUNSUPPORTED, with the last line that it said, where it
 * fails. */
int bench_tokenize_peer(tokenize_peer *p, int turn, const char *python, const sgt_corpus *c, int threads,
                        const sgt_stop *stop, sgt_error *err);

#endif
