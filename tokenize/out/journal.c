/* journal.c: append lines with checksums, and read them back. */
#include "tokenize/out/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"

#define MAX_BYTES ((size_t)1 << 30) /* largest journal; two million shards take 700 MB */
#define BUFFER ((size_t)1 << 16)    /* bytes of lines that are written at once */
#define NUMBERS (sizeof(sgt_checkpoint) / sizeof(uint64_t))

/* ---- writing ---- */

/* Write into sum[24] what ends a line: its checksum and a newline. Return its length. */
static size_t line_end(char sum[24], const char *line, size_t n)
{
    return (size_t)snprintf(sum, 24, " #%016" PRIx64 "\n", (uint64_t)XXH3_64bits(line, n));
}

static int put_line(sgt_journal *j, const char *line, sgt_error *err)
{
    char sum[24];
    const size_t n = strlen(line), m = line_end(sum, line, n);
    int rc = sgt_sink_put(&j->file, line, n, err);
    return rc ? rc : sgt_sink_put(&j->file, sum, m, err);
}

int sgt_journal_create(sgt_journal **out, const char *work, uint64_t fingerprint,
                       const char *options, sgt_error *err)
{
    char path[SGT_PATH], *line, *text, sum[24];
    const int n = asprintf(&line, "sgt-tokenize 2 %016" PRIx64 " %s", fingerprint, options);
    if (n < 0) return sgt_fail_memory(err, work);
    line_end(sum, line, (size_t)n);
    if (asprintf(&text, "%s%s", line, sum) < 0) text = NULL;
    sgt_path(path, work, "journal");
    int rc = text ? sgt_file_put(path, text, strlen(text), err) : sgt_fail_memory(err, work);
    if (!rc) rc = sgt_journal_open(out, work, err);
    if (!rc && !*out)
        rc = sgt_fail(err, SGT_EIO, "%s: what was written to it does not come back", path);
    free(text);
    free(line);
    return rc;
}

void sgt_journal_invalid(sgt_journal *j, sgt_invalid_at at)
{
    const sgt_invalid_at *last = j->invalid_count ? &j->invalid[j->invalid_count - 1] : NULL;
    /* the text is read again, and the place is known */
    if (last && (at.file < last->file || (at.file == last->file && at.offset <= last->offset)))
        return;
    if (j->invalid_count < SGT_INVALID_LISTED) j->invalid[j->invalid_count++] = at;
}

static int remember_shard(sgt_journal *j, int split, const sgt_manifest_shard *s)
{
    if (sgt_reserve(&j->shards[split], &j->room[split], j->count[split] + 1, sizeof *s, NULL,
                    NULL) < 0) {
        j->lost = 1;
        return -1;
    }
    j->shards[split][j->count[split]++] = *s;
    return 0;
}

static int put_shard(sgt_journal *j, int split, const sgt_manifest_shard *s, sgt_error *err)
{
    char line[192];
    snprintf(line, sizeof line, "shard %s %zu %" PRIu64 " %" PRIu64 " %016" PRIx64,
             sgt_split_names[split], j->count[split], s->tokens, s->documents, s->xxh3);
    if (remember_shard(j, split, s) < 0) return sgt_fail_memory(err, j->file.path);
    return put_line(j, line, err);
}

static int put_state(sgt_journal *j, const sgt_checkpoint *now, sgt_error *err)
{
    char line[16 + 21 * NUMBERS];
    uint64_t numbers[NUMBERS];
    memcpy(numbers, now, sizeof numbers);
    size_t n = (size_t)sprintf(line, "state");
    for (size_t i = 0; i < NUMBERS; i++) n += (size_t)sprintf(line + n, " %" PRIu64, numbers[i]);
    return put_line(j, line, err);
}

int sgt_journal_commit(sgt_journal *j, const sgt_manifest_shard done[SGT_SPLITS],
                       const sgt_checkpoint *now, sgt_error *err)
{
    char line[96];
    size_t before[SGT_SPLITS];
    int rc = SGT_OK;
    memcpy(before, j->count, sizeof before);
    for (int s = 0; s < SGT_SPLITS && !rc; s++)
        if (done[s].tokens) rc = put_shard(j, s, &done[s], err);
    for (size_t i = j->invalid_written; i < j->invalid_count && !rc; i++) {
        snprintf(line, sizeof line, "invalid %zu %" PRIu64 " %" PRIu64, i, j->invalid[i].file,
                 j->invalid[i].offset);
        rc = put_line(j, line, err);
    }
    if (!rc) rc = put_state(j, now, err);
    if (!rc) rc = sgt_sink_sync(&j->file, err);
    if (rc < 0) { /* forget what is not on disk */
        j->file.used = 0;
        memcpy(j->count, before, sizeof before);
        return rc;
    }
    j->invalid_written = j->invalid_count;
    j->now = *now;
    j->states++;
    return SGT_OK;
}

/* ---- reading ---- */

/* Read a number in base `base`, and the character `after` that must follow it. Return 0 or -1. */
static int read_number(const char **s, int base, char after, uint64_t *v)
{
    char *end;
    errno = 0;
    if (**s < '0' || **s > 'f') return -1;
    *v = strtoull(*s, &end, base);
    if (errno || *end != after) return -1;
    *s = end + (after != 0);
    return 0;
}

/* Return the line at *at of text[n] without its checksum, ended by a NUL, and move *at past it.
 * Return NULL if there is no complete line with a correct checksum. */
static char *next_line(char *text, size_t n, size_t *at)
{
    char *line = text + *at, *end = memchr(line, '\n', n - *at);
    uint64_t want;
    if (!end || end - line < 19) return NULL;
    char *sum = end - 18; /* " #" and 16 digits */
    const char *digits = sum + 2;
    *end = 0;
    if (memcmp(sum, " #", 2) || read_number(&digits, 16, 0, &want) < 0 ||
        want != XXH3_64bits(line, (size_t)(sum - line)))
        return NULL;
    *sum = 0;
    *at = (size_t)(end + 1 - text);
    return line;
}

static int read_first(sgt_journal *j, const char *line)
{
    static const char magic[] = "sgt-tokenize 2 ";
    if (!line || strncmp(line, magic, sizeof magic - 1)) return -1;
    line += sizeof magic - 1;
    if (read_number(&line, 16, ' ', &j->fingerprint) < 0) return -1;
    j->lost = !(j->options = strdup(line));
    return j->lost ? -1 : 0;
}

static int read_shard(sgt_journal *j, const char *line)
{
    for (int split = 0; split < SGT_SPLITS; split++) {
        sgt_manifest_shard s = {0};
        uint64_t index;
        size_t n = strlen(sgt_split_names[split]);
        if (strncmp(line, sgt_split_names[split], n) || line[n] != ' ') continue;
        line += n + 1;
        if (read_number(&line, 10, ' ', &index) < 0 || read_number(&line, 10, ' ', &s.tokens) < 0 ||
            read_number(&line, 10, ' ', &s.documents) < 0 ||
            read_number(&line, 16, 0, &s.xxh3) < 0 || index != j->count[split])
            return -1;
        snprintf(s.split, sizeof s.split, "%s", sgt_split_names[split]);
        sgt_writer_name(s.file, s.split, index, "bin");
        return remember_shard(j, split, &s);
    }
    return -1;
}

static int read_invalid(sgt_journal *j, const char *line)
{
    uint64_t index;
    sgt_invalid_at at;
    if (read_number(&line, 10, ' ', &index) < 0 || read_number(&line, 10, ' ', &at.file) < 0 ||
        read_number(&line, 10, 0, &at.offset) < 0 || index != j->invalid_count ||
        index >= SGT_INVALID_LISTED)
        return -1;
    sgt_journal_invalid(j, at);
    return 0;
}

static int read_state(sgt_journal *j, const char *line)
{
    uint64_t numbers[NUMBERS];
    size_t count = 1;
    for (const char *c = line; *c; c++) count += *c == ' ';
    if (count != NUMBERS) {
        j->other = 1;
        return 0;
    }
    for (size_t i = 0; i < NUMBERS; i++)
        if (read_number(&line, 10, i + 1 < NUMBERS ? ' ' : 0, &numbers[i]) < 0) return -1;
    memcpy(&j->now, numbers, sizeof numbers);
    return 0;
}

/* Parse text[n]. Return how many of its bytes are valid: up to the last good state, or the first
 * line; 0 if it is not a journal. */
static size_t read_lines(sgt_journal *j, char *text, size_t n)
{
    size_t at = 0, good, counts[SGT_SPLITS] = {0}, invalid = 0;
    if (read_first(j, next_line(text, n, &at)) < 0) return 0;
    good = at;
    for (;;) {
        const char *line = next_line(text, n, &at);
        if (!line) break;
        if (!strncmp(line, "shard ", 6) && read_shard(j, line + 6) == 0) continue;
        if (!strncmp(line, "invalid ", 8) && read_invalid(j, line + 8) == 0) continue;
        if (strncmp(line, "state ", 6) || read_state(j, line + 6) < 0) break;
        good = at;
        j->states++;
        memcpy(counts, j->count, sizeof counts);
        invalid = j->invalid_count;
    }
    memcpy(j->count, counts, sizeof counts);
    j->invalid_count = j->invalid_written = invalid;
    return good;
}

int sgt_journal_open(sgt_journal **out, const char *work, sgt_error *err)
{
    char path[SGT_PATH], *text = NULL;
    size_t n = 0, good = 0;
    int rc = SGT_OK;
    sgt_journal *j = calloc(1, sizeof *j);
    *out = NULL;
    if (!j) return sgt_fail_memory(err, work);
    j->file = (sgt_sink){.fd = -1, .size = BUFFER};
    if (!sgt_file_gone(sgt_path(path, work, "journal")))
        rc = sgt_file_get(&text, &n, path, MAX_BYTES, err);
    if (!rc && text) good = read_lines(j, text, n);
    /* Out of memory is not damage: fail here, or the run would start over. */
    if (j->lost) rc = sgt_fail_memory(err, path);
    free(text);
    if (!rc && good) rc = sgt_sink_open(&j->file, work, "journal", 0, err);
    if (!rc && good) rc = sgt_sink_cut(&j->file, good, err);
    if (rc < 0 || !good) sgt_journal_close(j);
    else *out = j;
    return rc;
}

void sgt_journal_close(sgt_journal *j)
{
    if (!j) return;
    sgt_sink_free(&j->file);
    for (int s = 0; s < SGT_SPLITS; s++) free(j->shards[s]);
    free(j->options);
    free(j);
}
