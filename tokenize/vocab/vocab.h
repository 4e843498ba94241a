/* vocab.h: defines the internal structure of a vocabulary, for the files of tokenize/. (Users
 * include sgt_tokenize.h.)
 *
 * Internally, the ids of tokens are in merge order: 0 to 255 are the single bytes in GPT-2's order,
 * and 256 + n is the token that merge n produces. The id of a merged token is thus also the rank of
 * its merge: of two possible merges, the merge to the token with the lower id is done first. No
 * merge produces the end-of-text token, so it has no id in merge order.
 *
 * GPT-2's own ids are already in merge order. A vocabulary from a file can number its tokens
 * differently, and can contain tokens that no merge produces. The ids in the file are called public
 * ids. They are used only when ids are returned to the user or read from the user. */
#ifndef SGT_VOCAB_H
#define SGT_VOCAB_H

#include <pthread.h>

#include "loader/base/ids.h"
#include "loader/base/memory.h"
#include "loader/base/error.h"
#include "tokenize/sgt_tokenize.h"
#include "tokenize/text/split.h"
#include "tokenize/text/utf8.h"

/* ---- the byte alphabet ----
 *
 * Files contain tokens and merges in GPT-2's byte alphabet, which has one printable character for
 * each byte. A printable Latin-1 byte is written as itself. The 68 other bytes are written as
 * U+0100 to U+0143, in order. */

/* Return the byte that is the single-byte token with this id in merge order, id < 256. (The tokens
 * of printable bytes come first.) */
uint8_t sgt_alphabet_byte(uint32_t id);

/* Decode the n bytes at `text`, which are in the byte alphabet, and write the result to `out`,
 * which must have room for n bytes. Return the number of bytes written, or 0 if a character is not
 * in the alphabet. */
size_t sgt_alphabet_read(const char *text, size_t n, uint8_t *out);

/* Encode the n bytes at s in the byte alphabet, and write the result in UTF-8 to `out`, which must
 * have room for 2n bytes. Return the number of bytes written. */
size_t sgt_alphabet_write(const uint8_t *s, size_t n, char *out);

/* ---- the hash table of merges ----
 *
 * A perfect hash table of a vocabulary's merges, which finds the token that a pair of tokens merges
 * to by reading one slot:
 *
 *     uint32_t merged = sgt_pair(&v->pairs, left, right);      // SGT_NO_TOKEN: no merge
 *
 * The pairs are divided into groups by their hash; there is one group for every 16 slots. Each
 * group has a factor, and a pair's hash times this factor selects the pair's slot. The factors are
 * chosen when the table is built, so that no two pairs share a slot (Fredman, Komlós, Szemerédi
 * 1984). Most look-ups are of pairs that do not merge. Such a look-up also reads only one
 * slot, but in an open-addressing table, it would read more slots than any other. */

#define SGT_NO_TOKEN UINT32_MAX
#define SGT_PAIR_GROUPS 8192 /* number of groups of pairs in GPT-2's hash table of merges */

typedef struct sgt_pairs {
    /* memory that contains `slots` and `factors`, in huge pages if possible, because every look-up
     * is a random access */
    sgt_arena memory;
    /* slots of the hash table: left id << 44 | right id << 24 | merged id; all bits are 1 in an
     * empty slot */
    uint64_t *slots;
    uint16_t *factors; /* factor of each group, an odd number */
    unsigned shift;    /* 64 - log2(number of slots) */
} sgt_pairs;

static inline uint64_t sgt_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 20 | right;
}

static inline uint64_t sgt_pair_hash(uint64_t key) { return key * 0x9E3779B97F4A7C15u; }

static inline uint32_t sgt_pair(const sgt_pairs *p, uint32_t left, uint32_t right)
{
    const uint64_t key = sgt_pair_key(left, right), hash = sgt_pair_hash(key),
                   at = p->slots[hash * p->factors[hash >> (p->shift + 4)] >> p->shift] ^ key << 24;
    /* If the slot contains this pair, `at` is the merged id. If the slot is empty or contains
     * another pair, `at` is at least 0xFFFFFF, and the OR makes the result SGT_NO_TOKEN. (`at` is
     * exactly 0xFFFFFF if the slot is empty and both ids are 0xFFFFF, as NO_ID in width.h.) The
     * code uses an OR because a branch would be mispredicted half of the time. */
    return (uint32_t)at | (0u - (at >= 0xFFFFFF));
}

/* Build the hash table of merges: for each id from `first` to `end - 1`, the tokens halves[id][0]
 * and halves[id][1] merge to token `id`. No pair may occur twice. factors: an array of
 * SGT_PAIR_GROUPS factors that are known to cause no collision among 2^17 slots, or NULL if they
 * must be searched for. The caller unmaps p->memory. Return 0 or SGT_ENOMEM. */
int sgt_pairs_make(sgt_pairs *p, const uint32_t (*halves)[2], uint32_t first, uint32_t end,
                   const uint16_t *factors, sgt_error *err);

/* ---- vocabularies ---- */

/* fingerprint (a hash of the tokens and the split rule) of GPT-2's vocabulary, whether it is built
 * in or loaded from a file */
#define SGT_GPT2_FINGERPRINT 0xD7F9B057243F9BE1u
/* name of the end-of-text token in GPT-2's vocabulary and in those that sgt trains */
#define SGT_EOT_TEXT "<|endoftext|>"

/* Slot of an open-addressing hash table. The slot is empty if `value` is 0, so the table cannot
 * store the value 0. */
typedef struct sgt_vocab_slot {
    uint32_t key, value;
} sgt_vocab_slot;

/* Return the slot that contains `key` in a hash table of 2^(64 - shift) slots. If the key is not in
 * the table, return the empty slot in which the caller can store it. */
static inline sgt_vocab_slot *sgt_vocab_slot_of(sgt_vocab_slot *slots, unsigned shift, uint32_t key)
{
    const size_t mask = ((size_t)1 << (64 - shift)) - 1;
    size_t i = (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> shift);
    while (slots[i].value && slots[i].key != key) i = (i + 1) & mask;
    return &slots[i];
}

/* A two- or three-byte character that is itself a token. Encoding can begin with this token instead
 * of with the character's bytes, which saves merges, unless a neighbouring byte is in one of the
 * masks below. Without such a neighbour, the character's bytes always merge to this token before
 * any of them merges with a byte outside the character. Proof: a merged token has a higher id than
 * the two tokens it is merged from, so merges happen in the order of ids. The merges inside the
 * character have lower ids than every merge across one of its ends, and they do not affect the
 * merges outside the character. */
typedef struct sgt_character {
    uint32_t id; /* id in merge order; 0 if the character is not a token */
    /* Masks of neighbouring bytes. If the byte directly before or after the character is in these
     * masks, encoding must not begin with the character's token, because the neighbour could merge
     * with a part of the character first.
     *
     * before: mask of bytes before the character. Bit b & 63 stands for continuation byte b. (After
     *         any other byte, sgt_vocab_character never returns the token.)
     * after:  mask of bytes after the character. The bit for byte b is sgt_character_after(b). */
    uint64_t before, after;
} sgt_character;

/* Return a mask with the bit of sgt_character.after that stands for byte b, which directly follows
 * a character. b must be an ASCII byte or the first byte of a multi-byte character (C0 to FF). Bits
 * 0 to 63 stand for C0 to FF. All ASCII bytes share the bit of C0, because no character begins with
 * C0. */
static inline uint64_t sgt_character_after(uint8_t b)
{
    return (uint64_t)1 << (b < 0x80 ? 0 : b & 63);
}

struct sgt_vocab {
    char name[64];
    /* Number of tokens (`size`), and public id of the end-of-text token (`eot`). Public ids go from
     * 0 to size - 1. */
    uint32_t size, eot;
    size_t width; /* size of an id in bytes: 2 or 4 */
    /* array of size + 1 offsets into `bytes`: the token with public id `id` consists of the bytes
     * from bytes[offsets[id]] up to, but not including, bytes[offsets[id + 1]] */
    uint32_t *offsets;
    uint8_t *bytes;
    /* array of flags, indexed by public id: 1 for an added token, which vocabulary files contain as
     * plain text; 0 for a token that files contain in the byte alphabet */
    uint8_t *added;

    /* number of tokens in merge order: the 256 single bytes, and the tokens that merges produce */
    uint32_t made;
    /* array of `made` ids: the public id of each token in merge order; NULL if public ids equal the
     * ids in merge order */
    uint32_t *ids;
    /* array of `made` pairs of ids, in merge order: token `id` is merged from the tokens
     * halves[id][0] (left) and halves[id][1] (right); for a single byte, both are `id` */
    uint32_t (*halves)[2];

    sgt_rule rule; /* rule by which text is split into pre-tokens */
    char *pattern; /* allocated copy of rule.text; NULL if rule.text is static */
    /* 1 if GPT-2's split rule was assumed, because neither the vocabulary's file nor the caller
     * names a rule; otherwise 0 */
    int assumed;
    int ignored; /* 1 if the file has truncation or padding settings, which sgt ignores */
    /* public id, plus 1, of the first added token that looks like a special token, such as <think>,
     * but is not marked as special in the file; 0 if there is none */
    uint64_t marker;
    /* Unicode normal form to which text is converted before it is tokenized. Only the functions
     * that tokenize a corpus apply it; sgt_encode does not. */
    sgt_normalize normalize;
    const char *eot_text; /* name of the end-of-text token, such as "<|endoftext|>" */
    /* name of the first setting of the end-of-text token in tokenizer.json that sgt does not apply,
     * such as "lstrip"; NULL if there is no such setting */
    const char *eot_setting;
    uint64_t fingerprint;

    /* id in merge order of each single-byte token, indexed by the byte */
    uint16_t byte_id[256];
    sgt_pairs pairs; /* hash table that maps two ids in merge order to the id they merge to */
    /* array of 65,536 ids in merge order, each `width` bytes wide. The element with index `first
     * byte | second byte << 8` is the token that these two bytes merge to. If they do not merge,
     * all bits of the element are 1. */
    void *byte_pairs;
    /* table of 65,536 bits, in 1,024 words: the bit with index `first byte << 8 | second byte` is 1
     * if some token contains these two bytes in this order */
    uint64_t *joins;

    /* hash table of the public ids, plus 1, of the tokens that no merges produce. It has
     * `whole_slots` slots, a power of two, and is NULL if there are no such tokens. A pre-token
     * becomes such a token only if it has exactly the same bytes. Therefore, pre-tokens must not be
     * cut if there are such tokens. */
    uint32_t *wholes;
    size_t whole_slots;

    /* array of 65,536 elements, indexed by code point: the characters that are tokens, and with
     * which encoding can begin instead of with their bytes. NULL if ids are 2 bytes wide: with such
     * a small vocabulary, text is cut into short words, and characters would save no time. */
    sgt_character *characters;

    /* smaller tables made from `joins`, which tell where a pre-token can be cut before a non-ASCII
     * character (split.h) */
    sgt_cuts cuts;

    /* lock for filling the trie of the tokens in merge order, which is used only to encode long
     * pre-tokens. The trie is filled when the first long pre-token is encoded, but its memory is
     * already reserved when the vocabulary is built. */
    pthread_mutex_t trie_lock;
    /* 1 if the trie has been filled, otherwise 0. It is atomic: the thread that fills the trie
     * stores 1 with release semantics, and readers load it with acquire semantics. */
    int trie_ready;
    sgt_vocab_slot *trie; /* hash table that maps node << 8 | byte to the next node */
    unsigned trie_shift;  /* 64 - log2(number of slots in `trie`) */
    /* array indexed by node: id in merge order of the token that ends at the node, plus 1; 0 if no
     * token ends there */
    uint32_t *trie_token;
    uint32_t *trie_end; /* array indexed by id in merge order: node at which the token ends */
    sgt_arena trie_memory;
};

/* Convert an id in merge order to the token's public id. */
static inline uint32_t sgt_vocab_public_id(const sgt_vocab *v, uint32_t id)
{
    return v->ids ? v->ids[id] : id;
}

/* Return a pointer to the bytes of the token that has this id in merge order. */
static inline const uint8_t *sgt_vocab_bytes(const sgt_vocab *v, uint32_t id)
{
    return v->bytes + v->offsets[sgt_vocab_public_id(v, id)];
}

static inline size_t sgt_vocab_length(const sgt_vocab *v, uint32_t id)
{
    const uint32_t *at = v->offsets + sgt_vocab_public_id(v, id);
    return at[1] - at[0];
}

/* Return 1 if some token contains the byte p[-1] directly followed by the byte p[0], otherwise
 * 0. */
static inline int sgt_vocab_joins_at(const sgt_vocab *v, const uint8_t *p)
{
    unsigned pair = (unsigned)p[-1] << 8 | p[0];
    return v->joins[pair >> 6] >> (pair & 63) & 1;
}

/* Return the id in merge order of the token for the character at s[i], if encoding can begin with
 * this token instead of with the character's bytes (sgt_character), and set *len to the token's
 * length in bytes. Otherwise (if the character is not a token, or a neighbouring byte could merge
 * with a part of it first), return 0 and set *len to 1. The n bytes at s are a pre-token. */
static inline uint32_t sgt_vocab_character(const sgt_vocab *v, const uint8_t *s, size_t i, size_t n,
                                           size_t *len)
{
    const uint8_t *p = s + i;
    const size_t bytes = p[0] < 0xE0 ? 2 : 3;
    *len = 1;
    if (p[0] < 0xC2 || p[0] >= 0xF0 || n - i < bytes) return 0;
    const unsigned b = p[1] ^ 0x80u, c = p[bytes - 1] ^ 0x80u;
    const uint32_t cp = bytes == 2 ? (p[0] & 0x1Fu) << 6 | b : (p[0] & 0xFu) << 12 | b << 6 | c;
    if ((b | c) > 0x3F || (bytes == 3 && cp < 0x800)) return 0;
    const sgt_character *known = &v->characters[cp];
    if (i && ((p[-1] & 0xC0) != 0x80 || known->before >> (p[-1] & 63) & 1)) return 0;
    if (bytes < n - i &&
        ((p[bytes] & 0xC0) == 0x80 || (known->after & sgt_character_after(p[bytes]))))
        return 0;
    if (known->id) *len = bytes;
    return known->id;
}

/* Return the public id of the token that consists of exactly the n bytes at s and is in v->wholes
 * (the tokens that no merges produce), or SGT_NO_TOKEN if there is no such token. */
uint32_t sgt_vocab_whole(const sgt_vocab *v, const uint8_t *s, size_t n);

/* Return the id in merge order of the longest token that is a prefix of the n >= 1 bytes at s, and
 * set *len to the token's length in bytes. sgt_vocab_need_trie must have been called before; it can
 * be called by any thread, any number of times. */
uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len);
void sgt_vocab_need_trie(const sgt_vocab *v);

/* Return 1 if encoding the bytes of the tokens `left` and `right`, one after the other, gives these
 * two tokens, because no merge crosses the border between them; otherwise 0. Ids are in merge
 * order. merged(pairs, l, r) must return the id that tokens l and r merge to, or SGT_NO_TOKEN if
 * they do not merge.
 *
 * The function undoes the merges that built the two tokens, one at a time, in reverse order: first
 * the merge to the token with the higher id, or the merge on the right if both ids are equal. After
 * each step, it looks up the two tokens that now touch at the border. If they merge to a lower id
 * than that of the token whose merge was just undone, their merge happens first and crosses the
 * border, so the result is 0. */
static inline int sgt_stay_apart(const uint32_t (*halves)[2],
                                 uint32_t (*merged)(const void *pairs, uint32_t l, uint32_t r),
                                 const void *pairs, uint32_t left, uint32_t right)
{
    for (uint32_t limit = SGT_NO_TOKEN;;) {
        if (merged(pairs, left, right) < limit) return 0;
        if (left > right) {
            /* since right < left < 256, both tokens are single bytes: no merge is left to undo */
            if (left < 256) return 1;
            limit = left;
            left = halves[left][1];
        } else {
            if (right < 256) return 1;
            /* + 1, because the pair of tokens at the border also merges first if it merges to the
             * token `right` itself: of several possible merges to the same token, the leftmost
             * happens first, and the border is further left */
            limit = right + 1;
            right = halves[right][0];
        }
    }
}

/* Create a vocabulary without tokens, and name it after the last component of `path`. Return NULL
 * if out of memory. */
sgt_vocab *sgt_vocab_new(const char *path);

/* Build the tables that the encoder uses, from the tokens and merges in v. Return 0 or SGT_ENOMEM.
 * For every token in merge order, encoding the token's bytes must give the token. That is, earlier
 * merges produce its two halves, and no earlier merge crosses the border between them
 * (sgt_vocab_from_parts checks this). factors: see sgt_pairs_make. */
int sgt_vocab_make_tables(sgt_vocab *v, const uint16_t *factors, sgt_error *err);

/* Register tokens that no merges produce: a pre-token that has exactly the bytes of such a token
 * becomes this token. ids: array of the tokens' public ids; count: their number. Return 0 or
 * SGT_ENOMEM. */
int sgt_vocab_add_wholes(sgt_vocab *v, const uint32_t *ids, size_t count, sgt_error *err);

/* Set the rule by which text is split into pre-tokens. rule: the name of a split rule such as
 * cl100k, a PCRE2 pattern, or NULL for GPT-2's rule. Return 0 or SGT_ENOMEM. */
int sgt_vocab_split_by(sgt_vocab *v, const char *rule, sgt_error *err);

/* Create GPT-2's vocabulary from the tables embedded in the library. The caller must free *out with
 * sgt_vocab_free. Return 0 or SGT_ENOMEM. */
int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err);

/* Load the vocabulary o->vocab, with the split rule and the normal form that the options *o ask
 * for. The caller must free *out with sgt_vocab_free. Return 0 or a negative SGT_E*: SGT_EFORMAT if
 * o->special_eot is set and the file gives the end-of-text token a setting that sgt does not apply,
 * because sgt would not find the same occurrences of the token in text. */
int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err);

/* Compute v->fingerprint, a hash of the tokens in the order of public ids and of the split rule.
 * The merges are also hashed, unless the ids imply them. Ids in merge order imply the merges:
 * encoding a token's bytes with only the tokens of lower ids gives exactly two tokens, and these
 * are the two that merge to the token (vocab_file.h). Return 0 or SGT_ENOMEM. */
int sgt_vocab_set_fingerprint(sgt_vocab *v, sgt_error *err);

/* Send a notice for each of these cases that applies: sgt ignores settings in the vocabulary's
 * file; the split rule is only assumed; Hugging Face's library might split text differently when it
 * loads the tokenizer.json that sgt writes. */
void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n);

/* For each public id below n, set bytes[id] to the number of bytes of text that the token stands
 * for. This is 0 for the end-of-text token, and for ids that are not in the vocabulary. */
void sgt_vocab_text_bytes(const sgt_vocab *v, uint32_t *bytes, uint32_t n);

#endif
