/* ids.h: token ids in memory and in files. An id is stored in 4 bytes if the vocabulary has more
 * than 65,536 ids, otherwise in 2 bytes. This size depends only on the vocabulary, not on the ids
 * that occur in the data. Functions that handle both sizes have a parameter `width`, the number of
 * bytes per id. Where speed matters, these functions are inlined with a constant `width`. */
#ifndef SGT_IDS_H
#define SGT_IDS_H

#include <stddef.h>
#include <stdint.h>

/* maximum number of ids in a vocabulary. It is several times the size of any vocabulary in use, and
 * is 2^20 because the tokenizer's hash table of token pairs (vocab.h) stores each id in 20 bits */
#define SGT_MOST_IDS (UINT32_C(1) << 20)
/* maximum size in bytes of a vocabulary file. It is enough for a Hugging Face tokenizer.json that
 * has SGT_MOST_IDS ids and puts each JSON value on a line of its own */
#define SGT_VOCAB_FILE_MOST ((size_t)128 << 20)

/* number of ids in GPT-2's vocabulary; the last one is the end-of-text id */
#define SGT_GPT2_IDS UINT32_C(50257)
/* names of the end-of-text token in common vocabularies. If a vocabulary has several of these
 * names, the name that comes first in this list is used */
#define SGT_EOT_NAMES                                                                        \
    "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<｜end▁of▁sentence｜>", \
        "[EOS]", "<EOS_TOKEN>", "<EOT>"

/* Return the default exclusive upper bound of ids whose data does not state the size of the
 * vocabulary. `width` is the number of bytes per id. */
static inline uint32_t sgt_ids_bound(size_t width)
{
    return width == 2 ? SGT_GPT2_IDS : SGT_MOST_IDS;
}

/* Return the number of bytes per id for a vocabulary of `vocab` ids. If `vocab` is 0, which means
 * that the size is unknown, return 2. */
static inline size_t sgt_id_width(uint32_t vocab) { return vocab > 65536 ? 4 : 2; }

/* Return id i of an array. */
static inline uint32_t sgt_id_at(const void *ids, size_t width, size_t i)
{
    return width == 2 ? ((const uint16_t *)ids)[i] : ((const uint32_t *)ids)[i];
}

#endif
