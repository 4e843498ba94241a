/* tokenize_text.h: the inputs of sgt-bench tokenize, in memory and cut into pieces. */
#ifndef SGT_BENCH_TOKENIZE_TEXT_H
#define SGT_BENCH_TOKENIZE_TEXT_H

#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

/* bytes of a piece: texts are cut to this size where possible, as sgt-tokenize cuts documents */
#define BENCH_PIECE ((size_t)256 << 10)

typedef struct bench_piece {
    const char *text;
    size_t n;
} bench_piece;

typedef struct bench_text {
    char **texts; /* (files) */
    size_t *sizes;
    size_t files;
    bench_piece *pieces;
    size_t count, room, longest; /* longest: bytes of the longest piece */
    uint64_t bytes;
} bench_text;

/* Read all files of the corpus, and standard input for "-", and cut them for this vocabulary. *t
 * must be zero; the caller frees it, even after a failure. Returns 0, SGT_EFORMAT if there is no
 * text, SGT_ESTOPPED, or a failure to read. */
int bench_text_read(bench_text *t, const sgt_corpus *corpus, const sgt_vocab *vocab,
                    const sgt_stop *stop, sgt_error *err);
void bench_text_free(bench_text *t);

#endif
