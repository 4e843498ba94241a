/* tokenize_peer.h: measures other tokenizers on the same texts, to compare with ours in one run. */
#ifndef SGT_TOOLS_BENCH_TOKENIZE_PEER_H
#define SGT_TOOLS_BENCH_TOKENIZE_PEER_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

enum { TOKENIZE_PEERS = 2, TOKENIZE_TURNS = 100 };

typedef struct tokenize_peer {
    const char *kind; /* "gigatoken", "tiktoken", "datasets" */
    int best;         /* 1: report the peer's best turn, not the median */
    int left_out;     /* 1: the interpreter lacks this package */
    char name[64];    /* "gigatoken 0.10.0" */
    uint64_t tokens;
    double seconds[TOKENIZE_TURNS]; /* seconds of each turn */
} tokenize_peer;

typedef struct tokenize_turn {
    const sgt_corpus *corpus;
    const char *const *inputs; /* paths that the corpus was listed from */
    size_t input_count;
    const char *python; /* interpreter for the peers */
    const char *cpu;    /* CPU level for ours */
    /* new folder for the output; NULL: write nothing, and the text is in memory already */
    const char *out;
    int threads; /* cores to use */
    const sgt_stop *stop;
} tokenize_turn;

/* Run turn `turn` of tests/peers/bpe.py, which is embedded in the program, on every file of the
 * corpus. Without `out`, the texts are read before its clock starts; with it, the whole process is
 * timed. If it fails, returns SGT_EUNSUPPORTED with its last line of output. */
int bench_tokenize_peer(tokenize_peer *p, int turn, const tokenize_turn *t, sgt_error *err);

/* Run the program sgt-tokenize of this program's folder from the inputs to `out`, and time the
 * whole process. */
int bench_tokenize_ours(double *seconds, uint64_t *tokens, const tokenize_turn *t, sgt_error *err);

#endif
