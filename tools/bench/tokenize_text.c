/* tokenize_text.c: reads the inputs of sgt-bench tokenize into memory and cuts them into pieces. */
#include "tools/bench/tokenize_text.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/vocab/vocab.h"

/* most bytes of a file; a larger one does not fit into memory */
#define MOST_BYTES ((size_t)1 << 40)

static int read_stream(char **text, size_t *n, sgt_error *err)
{
    size_t room = BENCH_PIECE, used = 0;
    char *p = malloc(room);
    while (p) {
        ssize_t got = read(STDIN_FILENO, p + used, room - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(p);
            return sgt_fail_errno(err, "standard input");
        }
        used += (size_t)got;
        if (!got) break;
        if (used < room) continue;
        char *more = realloc(p, room *= 2);
        if (!more) free(p);
        p = more;
    }
    if (!p) return sgt_fail_memory(err, "standard input");
    *text = p;
    *n = used;
    return SGT_OK;
}

static int add_piece(bench_text *t, const char *text, size_t n, sgt_error *err)
{
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 1024;
        bench_piece *more = reallocarray(t->pieces, room, sizeof *more);
        if (!more) return sgt_fail_memory(err, NULL);
        t->pieces = more;
        t->room = room;
    }
    t->pieces[t->count++] = (bench_piece){text, n};
    if (n > t->longest) t->longest = n;
    return SGT_OK;
}

/* Cut a text into pieces, only where that does not change its tokens. If there is no such place
 * within BENCH_PIECE bytes, try twice as many. */
static int cut(bench_text *t, const sgt_vocab *vocab, const char *text, size_t n, sgt_error *err)
{
    size_t want = BENCH_PIECE;
    while (n) {
        size_t at = n <= want ? n
                              : sgt_rule_cut(sgt_vocab_known_rule(vocab), text, want,
                                             sgt_vocab_joins(vocab));
        if (!at) {
            want *= 2;
            continue;
        }
        int rc = add_piece(t, text, at, err);
        if (rc < 0) return rc;
        text += at;
        n -= at;
        want = BENCH_PIECE;
    }
    return SGT_OK;
}

int bench_text_read(bench_text *t, const sgt_corpus *corpus, const sgt_vocab *vocab,
                    const sgt_stop *stop, sgt_error *err)
{
    size_t n = t->files = corpus->count;
    t->texts = calloc(n + 1, sizeof *t->texts);
    t->sizes = calloc(n + 1, sizeof *t->sizes);
    if (!t->texts || !t->sizes) return sgt_fail_memory(err, NULL);
    for (size_t i = 0; i < n; i++) {
        const sgt_corpus_file *f = &corpus->files[i];
        if (sgt_stopped(stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        int rc = f->stream ? read_stream(&t->texts[i], &t->sizes[i], err)
                           : sgt_file_get(&t->texts[i], &t->sizes[i], f->path, MOST_BYTES, err);
        if (rc < 0 || (rc = cut(t, vocab, t->texts[i], t->sizes[i], err)) < 0) return rc;
        t->bytes += t->sizes[i];
    }
    if (!t->bytes)
        return sgt_fail(err, SGT_EFORMAT, "%s: no text in it: nothing to measure",
                        corpus->files[0].path);
    return SGT_OK;
}

void bench_text_free(bench_text *t)
{
    for (size_t i = 0; t->texts && i < t->files; i++) free(t->texts[i]);
    free(t->texts);
    free(t->sizes);
    free(t->pieces);
}
