/* ids.h: token ids in memory and in files. An id takes 4 bytes if the vocabulary has more than
 * 65,536 ids, else 2 bytes. This width depends only on the size of the vocabulary, not on the ids
 * that occur. Functions that handle both widths have a parameter `width`, the bytes per id. Where
 * speed matters, they are inlined with a constant `width`. */
#ifndef SGT_IDS_H
#define SGT_IDS_H

#include <stddef.h>
#include <stdint.h>

/* maximum number of ids in a vocabulary, several times the size of any vocabulary in use. It is
 * 2^20 because the tokenizer's table of token pairs (vocab.h) stores each id in 20 bits */
#define SGT_MOST_IDS (UINT32_C(1) << 20)
/* maximum size in bytes of a vocabulary file: enough for a tokenizer.json that has SGT_MOST_IDS ids
 * and is written with one JSON value per line */
#define SGT_VOCAB_FILE_MOST ((size_t)128 << 20)

/* number of ids in GPT-2's vocabulary; the last one is the end-of-text id */
#define SGT_GPT2_IDS UINT32_C(50257)
/* names of the end-of-text token in common vocabularies. If a vocabulary has several of these
 * names, the first in this list is used */
#define SGT_EOT_NAMES                                                                        \
    "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<｜end▁of▁sentence｜>", \
        "[EOS]", "<EOS_TOKEN>", "<EOT>"

/* Return the default exclusive upper bound of ids, for data that does not state the size of its
 * vocabulary. `width` is the number of bytes per id. */
static inline uint32_t sgt_ids_bound(size_t width)
{
    return width == 2 ? SGT_GPT2_IDS : SGT_MOST_IDS;
}

/* Return the bytes per id in a vocabulary of `vocab` ids. If `vocab` is 0 (unknown), return 2. */
static inline size_t sgt_id_width(uint32_t vocab) { return vocab > 65536 ? 4 : 2; }

/* Return id i of an array. */
static inline uint32_t sgt_id_at(const void *ids, size_t width, size_t i)
{
    return width == 2 ? ((const uint16_t *)ids)[i] : ((const uint32_t *)ids)[i];
}

#endif
