/* ids.h: token ids in memory and in files. An id takes 2 bytes, or 4 if the vocabulary has more
 * than 65,536 ids; nothing else decides the width. Functions for both widths take `width`, the
 * bytes of an id. They are inlined with a constant `width` if they must be fast. */
#ifndef SGT_IDS_H
#define SGT_IDS_H

#include <stddef.h>
#include <stdint.h>

/* largest number of ids of a vocabulary or model, several times that of any vocabulary in use; the
 * tokenizer's pairs (vocab.h) have 20 bits for each id */
#define SGT_MOST_IDS (UINT32_C(1) << 20)
/* largest size in bytes of a vocabulary's file: a tokenizer.json of SGT_MOST_IDS ids, with one line
 * for each value */
#define SGT_VOCAB_FILE_MOST ((size_t)128 << 20)

/* number of ids in GPT-2's vocabulary; the last one is the end-of-text id */
#define SGT_GPT2_IDS UINT32_C(50257)
/* names of end-of-text tokens; if a vocabulary has several of them, the first in this list is
 * used */
#define SGT_EOT_NAMES                                                                        \
    "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<｜end▁of▁sentence｜>", \
        "[EOS]", "<EOS_TOKEN>", "<EOT>"

/* Return the exclusive upper bound of ids of `width` bytes for data that states no vocabulary
 * size. */
static inline uint32_t sgt_ids_bound(size_t width)
{
    return width == 2 ? SGT_GPT2_IDS : SGT_MOST_IDS;
}

/* Return the bytes of an id in a vocabulary of `vocab` ids. If the size is unknown (0), return
 * 2. */
static inline size_t sgt_id_width(uint32_t vocab) { return vocab > 65536 ? 4 : 2; }

/* Return id i of an array. */
static inline uint32_t sgt_id_at(const void *ids, size_t width, size_t i)
{
    return width == 2 ? ((const uint16_t *)ids)[i] : ((const uint32_t *)ids)[i];
}

#endif
