/* order.h: deliver the documents of one split, from all parts, in the order of the output.
 *
 *     sgt_order *o;
 *     sgt_order_request r = {.set = set, .split = 0, .ranks = 1};
 *     if (sgt_order_scatter(&r, &err) < 0) ...; // if it is shuffled
 *     if (sgt_order_open(&o, &r, &err) < 0) ...;
 *     for (at = 0; at < sgt_order_tokens(o); at += ids.count)
 *         if (sgt_order_read(o, at, UINT64_MAX, &ids, &err) < 0) ...;
 *     sgt_order_close(o);
 *
 * The order is that of the input, part after part, or a shuffled one. Duplicates are left out
 * (dedup.h). Only one thread at a time may use an order.
 *
 * In a shuffled order, document n of a split (in input order, counting duplicates) has the key
 * XXH3-64(n as 8 bytes, little endian; seed), and documents are sorted by (key, n). The order is a
 * list of batches, each of which is sorted when it begins. There are two cases:
 *
 * - One batch, whose documents are read from the parts. One rank, or all ranks of one machine, do
 *   this if the tokens of the split fit in half of the free memory. The parts were just written, so
 *   they are in the page cache, and random reads of them cost less than writing and reading all
 *   tokens once more. The lists of documents take at most 192 MiB in all ranks together. The shards
 *   of the parts stay open.
 *
 * - Buckets. Each document is copied once, into the file of a bucket, which the leading bits of its
 *   key select. Each rank copies its share of the documents into files of its own, in
 *   WORK/sorting/SPLIT/RANK-of-RANKS. A bucket consists of one file per rank, and has about 64 MiB
 *   (more if there are over 32 GiB of tokens, or if a document is very long). Any rank can then
 *   read the buckets in the order of the keys, loading one bucket at a time. In addition, a rank
 *   takes 64 KiB of memory per file while it writes files, and 8 bytes for each document of one
 *   shard of a part. The file "counts" in a rank's folder is written when all its files are on
 *   disk; a later run then does not write them again.
 *
 * A batch takes 48 bytes of memory for each of its documents, half of them to sort. */
#ifndef SGT_ORDER_H
#define SGT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/out/made.h"

typedef struct sgt_order_request {
    /* the parts, in the order of the input; only one order at a time may use the set */
    sgt_made *set;
    int split;
    /* the documents that are duplicates, which are left out; NULL: keep all documents */
    const sgt_dedup *dedup;
    int shuffle;
    uint64_t seed;
    const char *work; /* folder for the files of shuffled documents */
    /* number of this rank, and of all ranks, among those that make shards at the same time */
    uint32_t rank, ranks;
    /* bytes of memory available for documents if they are read from the parts in random order; 0:
     * none, because the ranks run on several machines */
    uint64_t memory;
    const sgt_stop *stop;
    /* called with the number of tokens scattered since the last call; NULL: no progress is
     * reported */
    void (*advance)(void *ctx, uint64_t tokens);
    void *ctx;
} sgt_order_request;

typedef struct sgt_order sgt_order;

/* Return whether sgt_order_scatter will copy the documents into files. */
int sgt_order_copies(const sgt_order_request *r);

/* Prepare a shuffled order: if its documents are copied, scatter this rank's share of them. When
 * all ranks have returned from this, each of them can open the order. */
int sgt_order_scatter(const sgt_order_request *r, sgt_error *err);

/* Open an order. The caller closes *o. */
int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err);
void sgt_order_close(sgt_order *o); /* NULL is allowed */

uint64_t sgt_order_tokens(const sgt_order *o); /* number of tokens of all documents in the order */

/* Some tokens of one document. */
typedef struct sgt_order_ids {
    const void *ids; /* ids of the set's width; valid until the next read */
    size_t count;
    int begins; /* 1: the first token is the first of its document */
} sgt_order_ids;

/* Read tokens of one document, from token `at` of the whole order on, which must exist: at least
 * one and at most `most`. Reads that follow each other are fast. */
int sgt_order_read(sgt_order *o, uint64_t at, uint64_t most, sgt_order_ids *out, sgt_error *err);

#endif
