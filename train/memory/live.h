/* live.h: which bytes of a step are in use when. A backend's memory is laid out once and never
 * moves; a buffer is live from the part of a step that first writes it to the last one that reads
 * what was written there. What is kept over steps (weights, moments) always is. The backend writes
 * it down beside its layout; a test holds it to be true: with options.scrub whatever is not live is
 * overwritten after each part, and the bits must stay the same.
 *
 * The parts of a micro-step of a model of L layers, in their order:
 *     0 embeddings forward, 1 .. L layer forward, L + 1 head and loss, L + 2 .. 2L + 1 layer backward from the last to
 *     the first, 2L + 2 embeddings backward; and of a step, after its last micro-step: 2L + 3 update. */
#ifndef SGT_LIVE_H
#define SGT_LIVE_H

#include <stddef.h>
#include <stdint.h>

#define SGT_LIVE_KINDS 16 /* at least as many as a backend has kinds of memory */

static inline unsigned sgt_part_forward(unsigned layer) { return 1 + layer; }
static inline unsigned sgt_part_head(unsigned layers) { return layers + 1; }
static inline unsigned sgt_part_backward(unsigned layers, unsigned layer)
{
    return 2 * layers + 1 - layer;
}
static inline unsigned sgt_part_embeddings(unsigned layers) { return 2 * layers + 2; }
static inline unsigned sgt_part_update(unsigned layers) { return 2 * layers + 3; }
static inline unsigned sgt_parts(unsigned layers) { return 2 * layers + 4; }

typedef struct sgt_live_buffer {
    unsigned char *at;
    uint64_t bytes;
    unsigned kind; /* as the backend numbers them */
    int always;
} sgt_live_buffer;

/* From part `first`, which writes the buffer, to part `last`, which is the last to read it. */
typedef struct sgt_live_span {
    uint32_t buffer, first, last;
} sgt_live_span;

/* Zeroed it is empty; sgt_live_free makes it so. */
typedef struct sgt_live {
    sgt_live_buffer *buffers;
    sgt_live_span *spans;
    uint32_t count, room, span_count, span_room;
    int failed; /* out of memory, or a span of an address where no buffer begins */
} sgt_live;

void sgt_live_free(sgt_live *l);

/* While memory is laid out: a buffer, of 0 bytes none. Then what it is used for: a span, as many as
 * there are. */
void sgt_live_buffer_at(sgt_live *l, void *at, uint64_t bytes, unsigned kind);
void sgt_live_always(sgt_live *l, const void *at);
void sgt_live_during(sgt_live *l, const void *at, unsigned first, unsigned last);

/* Whether a buffer is in use within a part, and still when that has ended. */
int sgt_live_within(const sgt_live *l, uint32_t buffer, unsigned part);
int sgt_live_after(const sgt_live *l, uint32_t buffer, unsigned part);

/* Bytes of each kind, in use at some time of a part, and when it has ended. */
void sgt_live_count(const sgt_live *l, unsigned part, uint64_t within[SGT_LIVE_KINDS],
                    uint64_t after[SGT_LIVE_KINDS]);

#endif
