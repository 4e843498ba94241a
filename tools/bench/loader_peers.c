/* loader_peers.c: runs the programs that sgt-bench loader compares with: Python's ways to make
 * batches, in one process that measures a turn on request, and fio, which measures the disk with
 * the same files. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/sample/sampler.h"
#include "tools/bench/loader.h"
#include "tools/bench/script.h"

BENCH_EMBED(sgt_loaders_py, "tests/peers/loaders.py");

/* ---- Python ---- */

struct loader_python {
    bench_script script;
    const char *args[2];
    char list[32]; /* "@/proc/self/fd/N" */
    int fd;        /* N */
    bench_child *child;
};

/* Return a memory file that lists the shards for loaders.py: path, offset of the first token and
 * number of tokens, with a NUL after each. */
static int list_shards(const loader_bench *b, sgt_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    for (size_t i = 0; f && i < b->shard_count; i++) {
        const loader_shard *s = &b->shards[i];
        fprintf(f, "%s%c%" PRIu64 "%c%" PRIu64 "%c", s->path, 0, s->data, 0, s->tokens, 0);
    }
    if (!f || fclose(f) != 0) {
        free(text);
        return sgt_fail_memory(err, NULL);
    }
    int fd = bench_memory_file("shards", text, n, err);
    free(text);
    return fd;
}

void loader_python_close(loader_bench *b)
{
    loader_python *p = b->python;
    if (!p) return;
    bench_script_close(p->child);
    if (p->fd >= 0) close(p->fd);
    free(p);
    b->python = NULL;
}

/* Start loaders.py and read its first line of output, which names numpy's version. An interpreter
 * that cannot run the script at all is an error for the user to fix. */
static int python_open(loader_bench *b, char *said, sgt_error *err)
{
    loader_python *p = b->python = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, NULL);
    if ((p->fd = list_shards(b, err)) < 0) return p->fd;
    snprintf(p->list, sizeof p->list, "@/proc/self/fd/%d", p->fd);
    p->args[0] = p->list;
    p->script = (bench_script){.python = b->o->peer,
                               .name = "loaders.py",
                               .text = sgt_loaders_py,
                               .args = p->args,
                               .stop = b->stop};
    int rc = bench_script_open(&p->child, &p->script, err);
    if (rc == SGT_OK) rc = bench_script_ask(p->child, NULL, said, err);
    if (rc != SGT_EUNSUPPORTED) return rc;
    int lacks = strstr(err->text, "No module named") != NULL;
    char why[1024];
    memcpy(why, err->text, sizeof why);
    return sgt_fail(err, SGT_EIO, "%s%s", why, lacks ? " (needs an interpreter with numpy)" : "");
}

/* Read the result of a turn, one line of JSON. */
static int read_answer(loader_bench *b, const loader_row *r, const char *said, loader_slice *s,
                       sgt_error *err)
{
    json_t *j = json_loads(said, 0, NULL);
    const char *name = json_string_value(json_object_get(j, "peer")),
               *why = json_string_value(json_object_get(j, "error"));
    char *version = r->maker >= LOADER_TORCH0 ? b->torch : b->numpy;
    int rc = SGT_OK;
    s->batches = json_number_value(json_object_get(j, "batches"));
    s->seconds = json_number_value(json_object_get(j, "seconds"));
    if (why) rc = sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: %s", b->o->peer, why);
    else if (!(s->batches > 0 && s->seconds > 0))
        rc =
            sgt_fail(err, SGT_EUNSUPPORTED,
                     "--peer %s: no batches and seconds in what it said: %.200s", b->o->peer, said);
    else if (name) snprintf(version, sizeof b->torch, "%s", name);
    json_decref(j);
    return rc;
}

/* the names that loaders.py has for its ways to make batches */
static const char *const peer_words[LOADER_MAKERS] = {[LOADER_WINDOW] = "window",
                                                      [LOADER_GATHER] = "gather",
                                                      [LOADER_LOOP] = "loop",
                                                      [LOADER_TORCH0] = "torch0",
                                                      [LOADER_TORCH2] = "torch2"};

int loader_python_turn(loader_bench *b, const loader_row *r, double seconds, loader_slice *s,
                       sgt_error *err)
{
    char line[128], *said = malloc(BENCH_SAID);
    int rc = said ? SGT_OK : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK && !b->python) rc = python_open(b, said, err);
    snprintf(line, sizeof line, "%s %s %" PRIu32 " %" PRIu32 " %.6f\n", peer_words[r->maker],
             loader_output_name(r->output), b->batch, b->seq, seconds);
    if (rc == SGT_OK) rc = bench_script_ask(b->python->child, line, said, err);
    if (rc == SGT_OK) rc = read_answer(b, r, said, s, err);
    free(said);
    return rc;
}

/* ---- fio ---- */

/* LIST_BYTES: most bytes of the list of files; DEPTH: queue depth of our reader */
enum { MOST_FILES = 64, LIST_BYTES = 100000, DEPTH = 128, LARGE_DEPTH = 16 };
/* least seconds of a run of fio, because it takes some time to start threads and open files */
#define LEAST_SECONDS 0.5

typedef struct fio_run {
    const char *rw, *files; /* fio's pattern; how it chooses the next file */
    uint64_t bytes;         /* bytes of a request */
    int depth;
} fio_run;

/* Return how fio must read to match our reader. Requests are whole pages, as those of a file system
 * are. */
static fio_run plan_fio(const loader_bench *b)
{
    uint64_t row = 2 * ((uint64_t)b->seq + 1);
    if (b->o->sampling == SGT_SAMPLING_SEQUENTIAL)
        return (fio_run){"read", "sequential", 1 << 20, LARGE_DEPTH};
    if (b->o->sampling == SGT_SAMPLING_BLOCK)
        return (fio_run){"randread", "random", (uint64_t)2 * SGT_BLOCK_TOKENS, LARGE_DEPTH};
    return (fio_run){"randread", "random", (row + 4095) / 4096 * 4096, DEPTH};
}

/* Return "--filename=A:B:C", with a backslash before each colon of a name; the caller frees it. If
 * there are very many shards, it lists some from all over the set. */
static char *list_files(const loader_bench *b)
{
    char *list = malloc(LIST_BYTES), *p = list ? stpcpy(list, "--filename=") : NULL;
    size_t step = (b->shard_count + MOST_FILES - 1) / MOST_FILES;
    for (size_t i = 0; p && i < b->shard_count; i += step) {
        const char *s = b->shards[i].path;
        if ((size_t)(p - list) + 2 * strlen(s) + 2 > LIST_BYTES) break;
        if (i) *p++ = ':';
        for (; *s; s++) {
            if (*s == ':') *p++ = '\\';
            *p++ = *s;
        }
        *p = 0;
    }
    return list;
}

/* Read the result of a run from fio's JSON, which begins at the first brace; notes may come before
 * it. As many batches count as its requests per second make up. */
static int read_fio(loader_bench *b, const fio_run *run, const char *said, loader_slice *s,
                    sgt_error *err)
{
    const char *text = strchr(said, '{');
    json_t *j = text ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    json_t *job = json_array_get(json_object_get(j, "jobs"), 0),
           *read = json_object_get(job, "read");
    const char *name = json_string_value(json_object_get(j, "fio version"));
    double iops = json_number_value(json_object_get(read, "iops"));
    double batch_requests =
        run->depth == DEPTH ? b->batch : 2.0 * b->batch * b->seq / (double)run->bytes;
    double user = json_number_value(json_object_get(job, "usr_cpu"));
    double system = json_number_value(json_object_get(job, "sys_cpu"));
    int failed = (int)json_integer_value(json_object_get(job, "error"));
    *s = (loader_slice){
        .batches = iops / batch_requests, .seconds = 1, .cpu_s = (user + system) / 100};
    if (name) snprintf(b->fio, sizeof b->fio, "%s", name);
    json_decref(j);
    if (iops > 0 && !failed) return SGT_OK;
    if (failed)
        return sgt_fail(err, SGT_EUNSUPPORTED, "fio: error %d (%s)", failed, strerror(failed));
    return sgt_fail(err, SGT_EUNSUPPORTED, "fio: no jobs[0].read.iops in what it said: %.*s",
                    (int)strcspn(said, "\n"), said);
}

static int run_fio(const loader_bench *b, const fio_run *run, double seconds, char *said,
                   sgt_error *err)
{
    char rw[32], order[48], bytes[48], depth[32], runtime[48];
    char *list = list_files(b);
    if (!list) return sgt_fail_memory(err, NULL);
    snprintf(bytes, sizeof bytes, "--bs=%" PRIu64, run->bytes);
    snprintf(depth, sizeof depth, "--iodepth=%d", run->depth);
    snprintf(runtime, sizeof runtime, "--runtime=%.0fms",
             1e3 * (seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS));
    snprintf(rw, sizeof rw, "--rw=%s", run->rw);
    snprintf(order, sizeof order, "--file_service_type=%s", run->files);
    const char *args[] = {"--name=sgt",
                          "--readonly",
                          rw,
                          order,
                          bytes,
                          depth,
                          runtime,
                          "--time_based",
                          "--ioengine=io_uring",
                          "--registerfiles=1",
                          "--fixedbufs=1",
                          "--direct=1",
                          "--norandommap",
                          "--randrepeat=0",
                          "--gtod_reduce=1",
                          "--thread",
                          "--iomem_align=2m",
                          "--output-format=json",
                          list,
                          NULL};
    bench_script fio = {.python = "fio", .name = "nothing", .args = args, .stop = b->stop};
    /* Huge pages for its buffers. A request into small pages consists of many pieces, and the disk
     * limits the pieces per request: from huge pages it reads at twice the rate. */
    setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
    int rc = bench_script_run(&fio, said, err);
    free(list);
    return rc;
}

int loader_fio_turn(loader_bench *b, double seconds, loader_slice *s, sgt_error *err)
{
    char *said = malloc(BENCH_SAID);
    if (!said) return sgt_fail_memory(err, NULL);
    fio_run run = plan_fio(b);
    int rc = run_fio(b, &run, seconds, said, err);
    if (rc == SGT_OK) rc = read_fio(b, &run, said, s, err);
    if (rc != SGT_EIO) b->fio_runs = 1;
    else rc = sgt_fail(err, SGT_EUNSUPPORTED, "fio is not here (apt-get install fio)");
    free(said);
    return rc;
}
