/* order.h: reads the documents of one split from all parts, in the order of the output. (A part is
 * the set of shards that one rank has written.) Only one thread at a time may use an order.
 *
 *     sgt_order *o;
 *     sgt_order_request r = {.set = set, .split = 0, .ranks = 1};
 *     if (sgt_order_scatter(&r, &err) < 0) ...; // if it is shuffled
 *     if (sgt_order_open(&o, &r, &err) < 0) ...;
 *     for (at = 0; at < sgt_order_tokens(o); at += ids.count)
 *         if (sgt_order_read(o, at, UINT64_MAX, &ids, &err) < 0) ...;
 *     sgt_order_close(o);
 *
 * The order is that of the input, part after part, or a shuffled one. Duplicates are skipped
 * (dedup.h).
 *
 * In a shuffled order, document n of a split (in input order, counting duplicates) has the key
 * XXH3-64(n as 8 bytes, little endian; seed), and documents are sorted by (key, n). The order is a
 * list of batches, each of which is sorted when it begins. A batch takes 48 bytes of memory for
 * each of its documents, half of them to sort. There are two cases:
 *
 * 1. One batch, whose documents are read from the parts. This case applies if all ranks run on one
 * machine and the tokens of the split fit in half of its free memory. The parts were just written,
 * so they are in the page cache, and reading them in random order is faster than writing and
 * reading all tokens once more. The lists of documents take at most 192 MiB in all ranks together.
 * The shards of the parts stay open.
 *
 * 2. Buckets. Each document is copied once, into the file of a bucket, which the leading bits of
 * its key select. A bucket consists of one file per rank, because each rank copies its share of the
 * documents into files of its own, in the folder sorting/SPLIT/RANK-of-RANKS of the work folder. A
 * bucket is about 64 MiB (more if there are over 32 GiB of tokens, or if a document is very long).
 * Any rank can then read the buckets in the order of the keys, loading one bucket at a time. While
 * it copies, a rank also needs 64 KiB of memory per file, and 8 bytes for each document of one
 * shard. The file "counts" in a rank's folder is written when all its files are on disk; a later
 * run then does not write them again. */
#ifndef SGT_ORDER_H
#define SGT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/out/made.h"

typedef struct sgt_order_request {
    /* the sets of shards of all parts (one part per rank), in the order of the input; only one
     * order at a time may use them */
    sgt_made *set;
    int split;
    /* marks the duplicates, which the order skips; NULL: keep all documents */
    const sgt_dedup *dedup;
    int shuffle;
    uint64_t seed;
    const char *work; /* folder for the files of buckets */
    /* rank: index of this rank among the ranks that write shards at the same time; ranks: number of
     * these ranks */
    uint32_t rank, ranks;
    /* Limit in bytes for reading documents directly from the parts, in random order. The tokens of
     * the split and the lists of its documents together must not exceed it, so that the tokens stay
     * in the page cache. 0: never, because the ranks run on several machines, which share no page
     * cache. */
    uint64_t memory;
    const sgt_stop *stop;
    /* called with the number of tokens copied into buckets since the previous call; may be NULL */
    void (*advance)(void *ctx, uint64_t tokens);
    void *ctx;
} sgt_order_request;

typedef struct sgt_order sgt_order;

/* Return 1 if sgt_order_scatter will copy the documents into buckets. */
int sgt_order_copies(const sgt_order_request *r);

/* Prepare a shuffled order: if it needs buckets (files of documents with similar keys), copy this
 * rank's share of the documents into them. When this call has returned in all ranks, any rank can
 * open the order. */
int sgt_order_scatter(const sgt_order_request *r, sgt_error *err);

/* Open an order of documents. The caller closes *out with sgt_order_close. */
int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err);
void sgt_order_close(sgt_order *o); /* NULL is allowed */

uint64_t sgt_order_tokens(const sgt_order *o); /* Return the number of tokens in the order. */

/* Some tokens of one document. */
typedef struct sgt_order_ids {
    /* token ids, as wide as those of the set's vocabulary; valid until the next read */
    const void *ids;
    size_t count;
    int begins; /* 1 if the first of these tokens begins its document */
} sgt_order_ids;

/* Read tokens of one document, starting at token `at` of the order, which must exist. The result
 * has 1 to `most` tokens. Consecutive reads are fast. */
int sgt_order_read(sgt_order *o, uint64_t at, uint64_t most, sgt_order_ids *out, sgt_error *err);

#endif
