/* live.h: records which bytes are in use in each part of a step. A backend's memory is laid out
 * once and never moves. A buffer is live from the part of a step that writes it to the last part
 * that reads those contents. Memory kept across steps (weights, moments) is always live. The
 * backend declares this next to its layout, and a test verifies it: with options.scrub everything
 * that is not live is overwritten after each part, and the results must stay the same to the bit.
 *
 * The parts of a micro-step of a model of L layers, in their order:
 *     0 embeddings forward, 1 .. L layer forward, L + 1 head and loss, L + 2 .. 2L + 1 layer
 *     backward from the last to the first, 2L + 2 embeddings backward;
 *     and, after the last micro-step of a step: 2L + 3 update. */
#ifndef SGT_LIVE_H
#define SGT_LIVE_H

#include <stddef.h>
#include <stdint.h>

#define SGT_LIVE_KINDS 16 /* upper bound of the number of a backend's kinds of memory */

static inline unsigned sgt_part_forward(unsigned layer) { return 1 + layer; }
static inline unsigned sgt_part_head(unsigned layers) { return layers + 1; }
static inline unsigned sgt_part_backward(unsigned layers, unsigned layer)
{
    return 2 * layers + 1 - layer;
}
static inline unsigned sgt_part_embeddings(unsigned layers) { return 2 * layers + 2; }
static inline unsigned sgt_part_update(unsigned layers) { return 2 * layers + 3; }

typedef struct sgt_live_buffer {
    unsigned char *at;
    uint64_t bytes;
    unsigned kind; /* number of its kind of memory, as the backend counts them */
    int always;
} sgt_live_buffer;

/* One use of a buffer: part `first` writes it, and part `last` is the last that reads it. */
typedef struct sgt_live_span {
    uint32_t buffer, first, last;
} sgt_live_span;

/* The buffers and their uses. An all-zero struct is empty; sgt_live_free makes it so again. */
typedef struct sgt_live {
    sgt_live_buffer *buffers;
    sgt_live_span *spans;
    uint32_t count, room, span_count, span_room;
    int failed; /* 1: memory ran out, or a use was declared at an address where no buffer begins */
} sgt_live;

void sgt_live_free(sgt_live *l);

/* sgt_live_buffer_at adds a buffer while memory is laid out, unless it has 0 bytes; `kind` is what
 * it is counted as. Then declare when it is in use: sgt_live_always, or sgt_live_during from part
 * `first` of a step to part `last`. A buffer may have several such spans. */
void sgt_live_buffer_at(sgt_live *l, void *at, uint64_t bytes, unsigned kind);
void sgt_live_always(sgt_live *l, const void *at);
void sgt_live_during(sgt_live *l, const void *at, unsigned first, unsigned last);

/* sgt_live_within returns whether a buffer is in use at some time during a part, sgt_live_after
 * whether it still is when the part has ended. */
int sgt_live_within(const sgt_live *l, uint32_t buffer, unsigned part);
int sgt_live_after(const sgt_live *l, uint32_t buffer, unsigned part);

/* Sum the bytes of each kind that are in use at some time during a part, and those that still are
 * when it has ended. */
void sgt_live_count(const sgt_live *l, unsigned part, uint64_t within[SGT_LIVE_KINDS],
                    uint64_t after[SGT_LIVE_KINDS]);

#endif
