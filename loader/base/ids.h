/* ids.h: token ids in memory and in files. They take 2 bytes, or 4 if the vocabulary has more than
 * 65,536 of them; nothing else decides that. Code for both widths takes `width`, the bytes of an id,
 * and is inlined with a constant where speed needs it. */
#ifndef SGT_IDS_H
#define SGT_IDS_H

#include <stddef.h>
#include <stdint.h>

/* most ids of a vocabulary or model, several times as many as any in use has; the tokenizer's
 * pairs (vocab.h) have 20 bits for each id */
#define SGT_MOST_IDS (UINT32_C(1) << 20)
/* most bytes of a vocabulary's file: a tokenizer.json of as many ids, with a line for each value */
#define SGT_VOCAB_FILE_MOST ((size_t)128 << 20)

#define SGT_GPT2_IDS UINT32_C(50257) /* ids of GPT-2's vocabulary; the last one ends a text */
/* names that an end-of-text token may have; if there are several, the first of these is it */
#define SGT_EOT_NAMES                                                                        \
    "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<｜end▁of▁sentence｜>", \
        "[EOS]", "<EOS_TOKEN>", "<EOT>"

/* Return the exclusive bound of ids of `width` bytes where nothing states one. */
static inline uint32_t sgt_ids_bound(size_t width)
{
    return width == 2 ? SGT_GPT2_IDS : SGT_MOST_IDS;
}

/* Return the bytes of an id of a vocabulary of `vocab` ids; 0, an unknown size, counts as small. */
static inline size_t sgt_id_width(uint32_t vocab) { return vocab > 65536 ? 4 : 2; }

/* Return id i of an array. */
static inline uint32_t sgt_id_at(const void *ids, size_t width, size_t i)
{
    return width == 2 ? ((const uint16_t *)ids)[i] : ((const uint32_t *)ids)[i];
}

#endif
