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

/* The token given out as `id`, as it stands within a JSON string: in the byte alphabet, of which JSON escapes two
 * characters alone, or where it is no bytes of text but a name, as that. */
static void put_token(writer *w, uint32_t id)
{
    size_t n;
    const uint8_t *s = sgt_vocab_token(w->v, id, &n);
    const int added = w->v->file ? w->v->file->added[id] : id == w->v->eot;
    for (; n-- > 0; s++) {
        if (*s == '"' || *s == '\\') put(w, "\\");
        if (!added) w->n += sgt_alphabet_write(&w->alphabet, s, 1, w->text + w->n);
        else if (*s < 0x20) w->n += (size_t)sprintf(w->text + w->n, "\\u%04x", *s);
        else w->text[w->n++] = (char)*s;
    }
}

static void put_added(writer *w)
{
    const sgt_vocab *v = w->v;
    int first = 1;
    put(w, "\"added_tokens\":[");
    for (uint32_t id = 0; id < sgt_vocab_size(v); id++) {
        if (!(v->file ? v->file->added[id] : id == v->eot)) continue;
        w->n += (size_t)sprintf(w->text + w->n, "%s{\"id\":%u,\"content\":\"", first ? "" : ",\n", id);
        put_token(w, id);
        put(w, "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}");
        first = 0;
    }
    put(w, "],\n");
}

/* GPT-2's rule is ByteLevel's own; any other stands before it. */
static void put_rule(writer *w)
{
    static const char byte_level[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":";
    const char *rule = w->v->file ? w->v->file->rule : NULL;
    put(w, "\"pre_tokenizer\":");
    if (rule) put(w, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"");
    for (const char *s = rule; s && *s; s++) {
        if (*s == '"' || *s == '\\') put(w, "\\");
        if ((unsigned char)*s < 0x20) w->n += (size_t)sprintf(w->text + w->n, "\\u%04x", *s);
        else w->text[w->n++] = *s;
    }
    if (rule) put(w, "\"},\"behavior\":\"Isolated\",\"invert\":false},");
    put(w, byte_level);
    put(w, rule ? "false}]},\n" : "true},\n");
}

static void put_head(writer *w)
{
    static const char *const normalizers[] = {"null", "{\"type\":\"NFC\"}", "{\"type\":\"NFKC\"}"};
    put(w, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n");
    put_added(w);
    put(w, "\"normalizer\":");
    put(w, normalizers[w->v->file ? w->v->file->normalize : SGT_NORMALIZE_NONE]);
    put(w, ",\n");
    put_rule(w);
    put(w, "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
           "\"trim_offsets\":false,\"use_regex\":true},\n"
           "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\n"
           "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\","
           "\"end_of_word_suffix\":\"\",\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n");
}

/* Tokens by the ids given out, merges in their order. */
static void put_model(writer *w)
{
    const sgt_vocab *v = w->v;
    const uint16_t *ids = v->file ? v->file->ids : NULL;
    put(w, "\"vocab\":{");
    for (uint32_t id = 0; id < sgt_vocab_size(v); id++) {
        put(w, id ? ",\"" : "\"");
        put_token(w, id);
        w->n += (size_t)sprintf(w->text + w->n, "\":%u", id);
    }
    put(w, "},\n\"merges\":[");
    for (uint32_t id = 256; id < v->eot; id++) {
        put(w, id == 256 ? "\"" : ",\"");
        for (int half = 0; half < 2; half++) {
            put_token(w, ids ? ids[v->halves[id][half]] : v->halves[id][half]);
            put(w, half ? "\"" : " ");
        }
    }
    put(w, "]}}\n");
}

int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err)
{
    /* A token is written at most twice by itself and once within a merge; a byte of one takes three characters (\ and "
     * are one byte each, others two) or, in an added token, six; numbers and names are within what is added to that. */
    writer w = {.v = v};
    size_t size = sgt_vocab_size(v), bytes = v->file ? v->file->offsets[size] : v->offsets[size], added = 1;
    for (size_t id = 0; v->file && id < size; id++) added += v->file->added[id];
    size_t room = 4096 + bytes * 15 + size * 64 + added * 160 + 6 * strlen(sgt_vocab_rule(v));
    w.text = malloc(room);
    if (!w.text) return sgt_fail(err, SGT_ENOMEM, "tokenizer.json: out of memory");
    sgt_alphabet_fill(&w.alphabet);
    put_head(&w);
    put_model(&w);
    *text = w.text;
    *n = w.n;
    return SGT_OK;
}
