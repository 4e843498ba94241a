/* tokenize_peer.c: runs bpe.py, the peers' script, with a file that lists the texts, and reads its
 * result, one line of JSON. It runs our own program in the same way. */
#include "tools/bench/tokenize_peer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "tools/bench/script.h"

BENCH_EMBED(sgt_bpe_py, "tests/peers/bpe.py");

/* Return a memory file with the paths of the corpus, with a NUL after each: there may be more than
 * a command line holds. */
static int list(const sgt_corpus *c, sgt_error *err)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < c->count; i++) n += strlen(c->files[i].path) + 1;
    char *all = malloc(n + 1);
    if (!all) return sgt_fail_memory(err, NULL);
    for (size_t i = 0; i < c->count; i++)
        at = (size_t)(stpcpy(all + at, c->files[i].path) - all) + 1;
    int fd = bench_memory_file("inputs", all, n, err);
    free(all);
    return fd;
}

/* Read the result of a peer's turn from its output. whole: seconds of the whole process, which
 * replace those that the peer reports; 0: keep these. */
static int take(tokenize_peer *p, int turn, const char *python, const char *said, double whole,
                sgt_error *err)
{
    json_t *j = json_loads(said, 0, NULL);
    const char *name = json_string_value(json_object_get(j, "peer"));
    double seconds = json_number_value(json_object_get(j, "seconds"));
    if (seconds > 0 && whole > 0) seconds = whole;
    p->tokens = (uint64_t)json_integer_value(json_object_get(j, "tokens"));
    p->seconds[turn] = seconds;
    snprintf(p->name, sizeof p->name, "%s", name ? name : p->kind);
    json_decref(j);
    if (seconds > 0) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: %s: no seconds in what it said: %.*s",
                    python, p->kind, (int)strcspn(said, "\n"), said);
}

int bench_tokenize_peer(tokenize_peer *p, int turn, const tokenize_turn *t, sgt_error *err)
{
    char *said = malloc(BENCH_SAID), files[32], count[16];
    int fd = said ? list(t->corpus, err) : sgt_fail_memory(err, NULL), rc = fd;
    double from = 0;
    if (rc >= 0) {
        snprintf(files, sizeof files, "@/proc/self/fd/%d", fd);
        snprintf(count, sizeof count, "%d", t->threads);
        const char *memory[] = {p->kind, "memory", files, "--threads", count, NULL};
        const char *disk[] = {p->kind, "disk", files, t->out, "--threads", count, NULL};
        bench_script script = {.python = t->python,
                               .name = "bpe.py",
                               .text = sgt_bpe_py,
                               .args = t->out ? disk : memory,
                               .threads = t->threads,
                               .stop = t->stop};
        from = sgt_now();
        rc = bench_script_run(&script, said, err);
        close(fd);
    }
    if (rc == SGT_OK) rc = take(p, turn, t->python, said, t->out ? sgt_now() - from : 0, err);
    free(said);
    return rc;
}

/* ---- ours, as a command ---- */

int bench_tokenize_ours(double *seconds, uint64_t *tokens, const tokenize_turn *t, sgt_error *err)
{
    char *said = malloc(BENCH_SAID), *program = sgt_beside_program(1, "sgt-tokenize"), count[16];
    const char *options[] = {"--json", "--quiet", "--threads", count, "--cpu", t->cpu};
    size_t n = sizeof options / sizeof *options;
    const char **args = calloc(n + t->input_count + 2, sizeof *args);
    int rc = said && program && args ? SGT_OK : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) {
        snprintf(count, sizeof count, "%d", t->threads);
        memcpy(args, options, sizeof options);
        memcpy(args + n, t->inputs, t->input_count * sizeof *args);
        args[n + t->input_count] = t->out;
        bench_script command = {.python = program,
                                .name = "nothing",
                                .args = args,
                                .threads = t->threads,
                                .stop = t->stop};
        double from = sgt_now();
        rc = bench_script_run(&command, said, err);
        *seconds = sgt_now() - from;
    }
    if (rc == SGT_OK) {
        json_t *j = json_loads(said, 0, NULL);
        *tokens = (uint64_t)json_integer_value(json_object_get(j, "tokens"));
        json_decref(j);
    }
    free(said);
    free(program);
    free(args);
    return rc;
}
