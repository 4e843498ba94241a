/* tokenizer_json.c: a vocabulary as Hugging Face's tokenizer.json, which its tokenizers and transformers load, and as
 * the pair of files that came before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alphabet.h"
#include "base/file.h"
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
    static const char byte_level[] =
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":";
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
    static const char *const normalizers[] = {"null", "null", "{\"type\":\"NFC\"}", "{\"type\":\"NFKC\"}"};
    put(w, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n");
    put_added(w);
    put(w, "\"normalizer\":");
    put(w, normalizers[w->v->normalize]);
    put(w, ",\n");
    put_rule(w);
    put(w, "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
           "\"trim_offsets\":false,\"use_regex\":true},\n"
           "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\n"
           "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\","
           "\"end_of_word_suffix\":\"\",\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n");
}

/* {"token":id,...}, by the ids given out */
static void put_vocab(writer *w)
{
    put(w, "{");
    for (uint32_t id = 0; id < sgt_vocab_size(w->v); id++) {
        put(w, id ? ",\"" : "\"");
        put_token(w, id);
        w->n += (size_t)sprintf(w->text + w->n, "\":%u", id);
    }
    put(w, "}");
}

/* `plain`: not within a JSON string */
static void put_half(writer *w, uint32_t merged, int half, int plain)
{
    const uint16_t *ids = w->v->file ? w->v->file->ids : NULL;
    const uint32_t id = ids ? ids[w->v->halves[merged][half]] : w->v->halves[merged][half];
    size_t n;
    const uint8_t *s = sgt_vocab_token(w->v, id, &n);
    if (plain) w->n += sgt_alphabet_write(&w->alphabet, s, n, w->text + w->n);
    else put_token(w, id);
}

static void put_model(writer *w)
{
    put(w, "\"vocab\":");
    put_vocab(w);
    put(w, ",\n\"merges\":[");
    for (uint32_t id = 256; id < w->v->eot; id++) {
        put(w, id == 256 ? "\"" : ",\"");
        put_half(w, id, 0, 0);
        put(w, " ");
        put_half(w, id, 1, 0);
        put(w, "\"");
    }
    put(w, "]}}\n");
}

static int begin(writer *w, const sgt_vocab *v, sgt_error *err)
{
    /* A token is written at most twice by itself and once within a merge; a byte of one takes three characters (\ and "
     * are one byte each, others two) or, in an added token, six; numbers and names are within what is added to that. */
    size_t size = sgt_vocab_size(v), bytes = v->file ? v->file->offsets[size] : v->offsets[size], added = 1;
    for (size_t id = 0; v->file && id < size; id++) added += v->file->added[id];
    *w = (writer){.v = v};
    w->text = malloc(4096 + bytes * 15 + size * 64 + added * 160 + 6 * strlen(sgt_vocab_rule(v)));
    if (!w->text) return sgt_fail(err, SGT_ENOMEM, "tokenizer.json: out of memory");
    sgt_alphabet_fill(&w->alphabet);
    return SGT_OK;
}

int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err)
{
    writer w;
    int rc = begin(&w, v, err);
    if (rc < 0) return rc;
    put_head(&w);
    put_model(&w);
    *text = w.text;
    *n = w.n;
    return SGT_OK;
}

static int save(writer *w, const char *folder, const char *name, sgt_error *err)
{
    char *path = sgt_join(folder, name);
    int rc = path ? sgt_file_put(path, w->text, w->n, err) : sgt_fail(err, SGT_ENOMEM, "%s: out of memory", folder);
    free(path);
    w->n = 0;
    return rc;
}

int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err)
{
    writer w;
    int rc = sgt_make_folders(folder, err);
    if (rc < 0 || (rc = begin(&w, v, err)) < 0) return rc;
    put(&w, "#version: 0.2\n");
    for (uint32_t id = 256; id < v->eot; id++) {
        put_half(&w, id, 0, 1);
        put(&w, " ");
        put_half(&w, id, 1, 1);
        put(&w, "\n");
    }
    rc = save(&w, folder, "merges.txt", err);
    if (!rc) {
        put_vocab(&w);
        rc = save(&w, folder, "vocab.json", err);
    }
    if (!rc) {
        put_head(&w);
        put_model(&w);
        rc = save(&w, folder, "tokenizer.json", err);
    }
    free(w.text);
    return rc;
}
