/* tokenizer_json.c: a vocabulary as Hugging Face's tokenizer.json, which its tokenizers and transformers load. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alphabet.h"
#include "vocab.h"

typedef struct writer {
    sgt_alphabet alphabet;
    const sgt_vocab *v;
    char *text;
    size_t n;
} writer;

static void put(writer *w, const char *s)
{
    size_t n = strlen(s);
    memcpy(w->text + w->n, s, n);
    w->n += n;
}

/* A token in the byte alphabet, as it stands within a JSON string: of that alphabet, JSON escapes these two alone. */
static void put_token(writer *w, uint32_t id)
{
    const uint8_t *s = w->v->bytes + w->v->offsets[id];
    for (size_t n = sgt_vocab_length(w->v, id); n-- > 0; s++) {
        if (*s == '"' || *s == '\\') put(w, "\\");
        w->n += sgt_alphabet_write(&w->alphabet, s, 1, w->text + w->n);
    }
}

static void put_head(writer *w)
{
    w->n += (size_t)sprintf(
        w->text + w->n,
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
        "\"added_tokens\":[{\"id\":%u,\"content\":\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,"
        "\"rstrip\":false,\"normalized\":false,\"special\":true}],\n"
        "\"normalizer\":null,\n"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"trim_offsets\":true,\"use_regex\":true},\n"
        "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
        "\"trim_offsets\":false,\"use_regex\":true},\n"
        "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\n"
        "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\","
        "\"end_of_word_suffix\":\"\",\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n",
        w->v->eot);
}

int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err)
{
    /* A byte takes three characters at most (\ and " are one byte each, others two), a token is written twice, with at
     * most 32 characters of numbers and punctuation. */
    writer w = {.v = v};
    size_t room = 4096 + (size_t)v->offsets[v->size] * 6 + (size_t)v->size * 64;
    w.text = malloc(room);
    if (!w.text) return sgt_fail(err, SGT_ENOMEM, "tokenizer.json: out of memory");
    sgt_alphabet_fill(&w.alphabet);
    put_head(&w);
    put(&w, "\"vocab\":{");
    for (uint32_t id = 0; id < v->eot; id++) {
        put(&w, "\"");
        put_token(&w, id);
        w.n += (size_t)sprintf(w.text + w.n, "\":%u,", id);
    }
    w.n += (size_t)sprintf(w.text + w.n, "\"<|endoftext|>\":%u},\n\"merges\":[", v->eot);
    for (uint32_t id = 256; id < v->eot; id++) {
        put(&w, id == 256 ? "\"" : ",\"");
        put_token(&w, v->halves[id][0]);
        put(&w, " ");
        put_token(&w, v->halves[id][1]);
        put(&w, "\"");
    }
    put(&w, "]}}\n");
    *text = w.text;
    *n = w.n;
    return SGT_OK;
}
