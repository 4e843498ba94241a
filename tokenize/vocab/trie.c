/* trie.c: finds the longest token at a place in a text, for the encoder of long pieces. Most texts
 * have no such piece, and making the trie takes longer than making the rest of a vocabulary. So the
 * first thread that needs the trie makes it. */
#include "tokenize/vocab/vocab.h"

#define ROOT 1u

/* Implements the check of vocab.h: undo the last merge of the two tokens, again and again. The last
 * merge has the higher id; of equal ids, it is the right one. The tokens that then touch at the
 * border must not merge to an id below `limit`. Such a merge would go before the one undone, and
 * across the border. */
int sgt_vocab_may_follow(const sgt_vocab *v, uint32_t left, uint32_t right, uint32_t limit)
{
    for (;;) {
        uint32_t merged = sgt_pair(&v->pairs, left, right);
        if (merged != SGT_NO_TOKEN && merged < limit) return 0;
        if (left > right) {
            if (left < 256) return 1; /* both tokens are single bytes: nothing is left to undo */
            limit = left;
            left = v->halves[left][1];
        } else {
            if (right < 256) return 1;
            /* if the pair at the border has an id equal to right's, it is merged first, because it
             * lies further left */
            limit = right + 1;
            right = v->halves[right][0];
        }
    }
}

/* Return whether the merges make token `id` from its own bytes: they make both halves, and no
 * earlier merge crosses the border between these. In a trained vocabulary this holds for all
 * tokens, but not in every list of merges. made: the results for all lower ids, a bit each. */
static int is_made(const sgt_vocab *v, const uint8_t *made, uint32_t id)
{
    uint32_t left = v->halves[id][0], right = v->halves[id][1];
    if (id < 256) return 1;
    return made[left >> 3] >> (left & 7) & made[right >> 3] >> (right & 7) & 1 &&
           sgt_vocab_may_follow(v, left, right, id);
}

static size_t trie_slot(const sgt_vocab *v, uint32_t key)
{
    size_t mask = ((size_t)1 << (64 - v->trie_shift)) - 1, i = sgt_vocab_hash(key, v->trie_shift);
    while (v->trie[i].value && v->trie[i].key != key) i = (i + 1) & mask;
    return i;
}

static void make_trie(sgt_vocab *v)
{
    uint32_t nodes = ROOT + 1;
    uint8_t made[65536 / 8] = {0};
    for (uint32_t id = 0; id < v->eot; id++) {
        uint32_t node = ROOT;
        if (!is_made(v, made, id)) continue;
        made[id >> 3] |= (uint8_t)(1 << (id & 7));
        for (uint32_t i = v->offsets[id]; i < v->offsets[id + 1]; i++) {
            uint32_t key = node << 8 | v->bytes[i];
            size_t at = trie_slot(v, key);
            if (!v->trie[at].value) v->trie[at] = (sgt_vocab_slot){key, nodes++};
            node = v->trie[at].value;
        }
        v->trie_token[node] = (uint16_t)(id + 1);
    }
}

void sgt_vocab_need_trie(const sgt_vocab *shared)
{
    /* the one change to a shared vocabulary: a thread fills the trie, under trie_lock */
    sgt_vocab *v = (sgt_vocab *)shared;
    /* pairs with the release store below */
    if (__atomic_load_n(&v->trie_ready, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&v->trie_lock);
    if (!v->trie_ready) {
        make_trie(v);
        __atomic_store_n(&v->trie_ready, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&v->trie_lock);
}

uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len)
{
    uint32_t node = ROOT, best = SGT_NO_TOKEN;
    for (size_t i = 0; i < n; i++) {
        node = v->trie[trie_slot(v, node << 8 | s[i])].value;
        if (!node) break;
        if (v->trie_token[node]) {
            best = v->trie_token[node] - 1u;
            *len = i + 1;
        }
    }
    return best;
}
