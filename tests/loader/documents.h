/* documents.h: writes a set whose documents continue across shards, and records its content. For
 * the tests in this folder. */
#ifndef SGT_TEST_DOCUMENTS_H
#define SGT_TEST_DOCUMENTS_H

#include <stdint.h>

#include "loader/sgt_loader.h"
#include "tests/loader/faults.h"
#include "tests/loader/shards.h"

#define EOT (VOCAB - 1)
enum { SHARDS = 6, MOST = 4000 /* tokens */ };

/* The content that put_documents wrote last. */
extern uint32_t stream[MOST];      /* all tokens, shard after shard */
extern uint64_t first[SHARDS + 1]; /* first token of each shard, and the end of the last one */
/* first token of each document, then the end of the last one */
extern uint64_t starts[MOST], documents;

/* Write folder `name`, without .idx files, with them (indexed: 1), or with them and with end-of-text
 * ids at tokens that begin no document instead (2): shards of `sizes` tokens. One document extends
 * from shard 0 through shards 1 and 2 into shard 3. The last document extends into shard 5, in
 * which none starts. The mean length of documents is `mean` tokens, and `later` tokens from token
 * 1,000 on. */
void put_documents(const char *name, const uint64_t sizes[SHARDS], unsigned mean, unsigned later,
                   int indexed);
/* Write only the .idx file of shard s. */
void put_documents_index(const char *path, uint32_t s);

/* What a row must hold: ids, of which all but the first `tokens` are padding, and for each whether
 * a document begins there. start: the row's first token, counted through all shards. */
typedef struct row_model {
    uint64_t start, tokens;
    uint32_t ids[600];
    uint8_t begins[600];
} row_model;

/* Fill in *m for row `row`. `plan` is passed on from check_rows. */
typedef void make_row(row_model *m, const sgt_loader *l, const void *plan, uint64_t row);

/* Compare many batches, in rows and as int32 inputs and targets, with what `make` says. */
void check_rows(const sgt_loader *l, make_row *make, const void *plan);

/* A check of the batches of set `path`. check_variants calls it for folder d: with reads by io_uring
 * that return only a few bytes, without io_uring, and for each rank of 1, 2, 3, 4 and 6 ranks. */
typedef void set_check(const char *path, const sgt_loader_options *o, const reader_fault *fault);
void check_variants(set_check *check, sgt_sampling sampling);

#endif
