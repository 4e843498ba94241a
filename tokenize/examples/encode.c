/* encode.c: converts text to GPT-2's ids and back with libsgt-tokenize, line by line from standard
 * input.
 *
 *     cc encode.c $(pkg-config --cflags --libs sgt-tokenize) -o encode
 *     echo 'Hello, world!' | ./encode [VOCAB]
 *
 * VOCAB is any file that sgt_vocab_load reads. Each id is printed with the bytes it stands for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sgt_tokenize.h>

#define LINE (1 << 16) /* most bytes of a line; longer ones are encoded in parts */

/* Print a line's ids, each with its bytes. Fails if the ids do not decode to the line. */
static int show(const sgt_vocab *vocab, sgt_encoder *encoder, const char *line, size_t n,
                sgt_error *err)
{
    static char ids[4 * LINE]; /* a text never has more ids than bytes */
    const size_t width = sgt_vocab_width(vocab);
    char *text, shown[256];
    size_t size, count;
    int rc = sgt_encode(encoder, line, n, ids, sizeof ids, &count, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < count; i++) {
        rc = sgt_decode(vocab, ids + i * width, 1, &text, &size, err);
        if (rc < 0) return rc;
        uint32_t id = 0;
        memcpy(&id, ids + i * width, width);
        printf("%s%u %s", i ? " | " : "", id, sgt_printable(shown, sizeof shown, text));
        free(text);
    }
    printf("\n");
    rc = sgt_decode(vocab, ids, count, &text, &size, err);
    if (rc < 0) return rc;
    int same = size == n && !memcmp(text, line, n);
    free(text);
    return same ? 0
                : sgt_fail(err, SGT_EFORMAT, "the ids of %zu bytes stand for %zu others", n, size);
}

int main(int argc, char **argv)
{
    static char line[LINE];
    sgt_vocab *vocab = NULL;
    sgt_encoder *encoder = NULL;
    sgt_error err;

    int rc = sgt_vocab_load(&vocab, argc > 1 ? argv[1] : "gpt2", NULL, &err);
    if (rc == 0) rc = sgt_encoder_new(&encoder, vocab, &err);
    while (rc == 0 && fgets(line, sizeof line, stdin))
        rc = show(vocab, encoder, line, strcspn(line, "\n"), &err);
    if (rc < 0) fprintf(stderr, "encode: %s\n", err.text);
    sgt_encoder_free(encoder); /* before its vocabulary */
    sgt_vocab_free(vocab);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
