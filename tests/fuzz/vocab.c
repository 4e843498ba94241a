/* vocab.c: a vocabulary file of any format is refused with a message of one line. Otherwise the
 * vocabulary decodes the ids of any text to that text. Written as tokenizer.json and read again, it
 * is the same vocabulary. */
#include "loader/base/ids.h"
#include "tests/fuzz/fuzz.h"
#include "tokenize/vocab/vocab.h"

static void check_text(const sgt_vocab *v, const uint8_t *text, size_t n)
{
    sgt_encoder *e = NULL;
    sgt_error err;
    char *ids = malloc((n + 1) * sgt_vocab_width(v));
    char *back;
    size_t length, count, room = n * sgt_vocab_width(v);
    must(ids && sgt_encoder_new(&e, v, &err) == 0, "there is memory");
    must(sgt_encode(e, text, n, ids, room, &count, &err) == 0, "any text has ids");
    must(count <= n, "no id is of no byte");
    for (size_t i = 0; i < count; i++)
        must(sgt_id_at(ids, sgt_vocab_width(v), i) < sgt_vocab_size(v),
             "an id is the vocabulary's");
    must(sgt_decode(v, ids, count, &back, &length, &err) == 0, "they can be decoded");
    must(length == n && !memcmp(back, text, n), "to what was encoded");
    free(back);
    free(ids);
    sgt_encoder_free(e);
}

static void check_written(const sgt_vocab *v)
{
    sgt_vocab *again;
    sgt_error err;
    scoped_memory char *text = NULL;
    size_t n;
    must(sgt_vocab_tokenizer_json(v, &text, &n, &err) == 0, "it can be written");
    int rc = sgt_vocab_load(&again, put_file("tokenizer.json", text, n), NULL, &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    must(rc == 0, "what is written can be read");
    must(sgt_vocab_size(again) == sgt_vocab_size(v) && sgt_vocab_eot(again) == sgt_vocab_eot(v) &&
             sgt_vocab_fingerprint(again) == sgt_vocab_fingerprint(v),
         "it is the same vocabulary");
    unlink(path_of("tokenizer.json"));
    sgt_vocab_free(again);
}

void fuzz_vocab(const uint8_t *data, size_t size)
{
    /* sgt recognizes merges.txt by its name, and the other formats by their contents */
    static const char *const names[] = {"merges.txt", "vocabulary"};
    sgt_error err;
    for (int i = 0; i < 2; i++) {
        sgt_vocab *v;
        const char *path = put_file(names[i], data, size);
        int rc = sgt_vocab_load(&v, path, NULL, &err);
        unlink(path);
        if (rc < 0) {
            must_say(rc, &err);
            continue;
        }
        check_text(v, data, size);
        check_written(v);
        sgt_vocab_free(v);
    }
}
