/* known.c: recognizes, by name and first bytes, files that are not shards, so that their bytes are
 * not read as tokens. */
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tokenize/input/corpus.h"
#include "loader/base/file.h"
#include "loader/shards/megatron.h"
#include "tools/inspect/inspect.h"

#define PREFIX 4096

typedef struct part {
    const char *name, *of; /* name of a file, and what such a file is */
} part;

/* Files in the folder of a set, a run or a checkpoint; the folder can be inspected instead. */
static const part parts[] = {
    {"log.jsonl", "the log of a run"},
    {"memory.jsonl", "the memory log of a run"},
    {"starts.jsonl", "the list of the starts of a run"},
    {"options.json", "the options of a run"},
    {"latest", "the name of a run's latest checkpoint"},
    {"manifest.json", "the manifest of a set of shards"},
    {"sources.jsonl", "the list of what a set of shards was made from"},
    {"tokenizer.json", "a vocabulary"},
    {"config.json", "part of a checkpoint"},
    {"state.json", "part of a checkpoint"},
    {"model.safetensors", "part of a checkpoint"},
    {"optimizer.safetensors", "part of a checkpoint"},
};

static int ends(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && !strcmp(name + n - m, ending);
}

/* Read the first bytes of a regular file and append a NUL. Return their number, or -1 on failure,
 * whose reason is reported by the code that opens the file later. */
static ssize_t first_bytes(const char *path, char p[PREFIX + 1])
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n =
        fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, p, PREFIX, 0) : -1;
    if (fd >= 0) close(fd);
    p[n > 0 ? n : 0] = 0;
    return n;
}

/* Return whether the file has a header of our shards or of llm.c's, valid or not: the magic number
 * of either is in the first four bytes. */
static int has_header(const char *p, ssize_t n)
{
    uint32_t magic = 0;
    if (n >= 4) memcpy(&magic, p, sizeof magic); /* little-endian, like this machine */
    return magic == SGT_SHARD_MAGIC || magic == SGT_SHARD_LLMC_WIDE;
}

static int is_html(const char *p)
{
    p += sgt_utf8_mark(p, strlen(p));
    p += strspn(p, " \t\r\n");
    return !strncasecmp(p, "<!doctype html", 14) || !strncasecmp(p, "<html", 5);
}

/* Return whether the first line looks like an entry of a run's log, whatever the file's name. */
static int is_log(const char *p)
{
    json_t *line = *p == '{' ? json_loadb(p, strcspn(p, "\n"), 0, NULL) : NULL;
    int found = json_object_get(line, "step") && json_object_get(line, "loss");
    json_decref(line);
    return found;
}

static int fail_naming_folder(const char *path, const char *what, sgt_error *err)
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash + 1 - path) : 2;
    return sgt_fail(err, SGT_EFORMAT, "%s: %s, not a shard: pass %.*s", path, what, n,
                    slash ? path : "./");
}

int inspect_known(const char *path, sgt_error *err)
{
    char p[PREFIX + 1];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    ssize_t n = first_bytes(path, p);
    if (n < 0 || ends(name, ".bin") || has_header(p, n)) return SGT_OK;
    char *shard = sgt_megatron_shard(path);
    free(shard);
    if (shard) return SGT_OK; /* path is the shard's .idx, or its name without the extension */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(name, parts[i].name)) return fail_naming_folder(path, parts[i].of, err);
    if (is_html(p)) return sgt_fail(err, SGT_EFORMAT, "%s: HTML, not a shard", path);
    if (is_log(p)) return fail_naming_folder(path, "the log of a run", err);
    if (ends(name, ".idx"))
        return sgt_fail(err, SGT_EFORMAT, "%s: where the documents of a shard begin: pass %.*s.bin",
                        path, (int)strlen(path) - 4, path);
    const sgt_magic *b = sgt_binary_of((const uint8_t *)p, (size_t)n, 0, 1);
    if (b) return sgt_fail(err, SGT_EFORMAT, "%s: %s, not a shard", path, b->what);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: not a file that sgt knows (a shard without a header is read with --raw, "
                    "or under a name that ends in .bin)",
                    path);
}
