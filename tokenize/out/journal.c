/* journal.c: writes and reads the journal, from which a killed run resumes. */
#include "tokenize/out/journal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/json.h"

#define VERSION 3
/* maximum size of a journal in bytes; the run's options, which it contains, can need nearly all of
 * it */
#define MAX_BYTES ((size_t)64 << 20)
#define MOST_VALUES 1000 /* most JSON values in a journal */
#define NUMBERS (sizeof(sgt_checkpoint) / sizeof(uint64_t))

/* ---- writing ---- */

/* Return the checksum of the checkpoint in j->now. */
static uint64_t hash_checkpoint(const sgt_journal *j)
{
    return XXH3_64bits(&j->now, sizeof j->now);
}

static int write_journal(const sgt_journal *j, sgt_error *err)
{
    uint64_t numbers[NUMBERS];
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f) return sgt_fail_memory(err, j->path);
    memcpy(numbers, &j->now, sizeof numbers);
    fprintf(f,
            "{\"version\": %d, \"fingerprint\": \"%016" PRIx64 "\", \"options\": %s, \"begun\": %d",
            VERSION, j->fingerprint, j->options, j->begun);
    for (size_t i = 0; i < NUMBERS; i++)
        fprintf(f, "%s%" PRId64, i ? ", " : ", \"checkpoint\": [", (int64_t)numbers[i]);
    fprintf(f, "], \"xxh3\": \"%016" PRIx64 "\", \"invalid\": [", hash_checkpoint(j));
    for (size_t i = 0; i < j->invalid_count; i++)
        fprintf(f, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "", (int64_t)j->invalid[i].file,
                (int64_t)j->invalid[i].offset);
    fputs("]}", f);
    const int bad = ferror(f), rc = fclose(f) != 0 || bad ? sgt_fail_memory(err, j->path)
                                                          : sgt_file_put(j->path, text, n, err);
    free(text);
    return rc;
}

int sgt_journal_create(sgt_journal **out, const char *work, uint64_t fingerprint,
                       const char *options, sgt_error *err)
{
    sgt_journal *j = calloc(1, sizeof *j);
    if (!j) return sgt_fail_memory(err, work);
    sgt_path(j->path, work, "journal");
    j->fingerprint = fingerprint;
    j->options = strdup(options);
    const int rc = j->options ? write_journal(j, err) : sgt_fail_memory(err, j->path);
    if (rc < 0) sgt_journal_close(j);
    else *out = j;
    return rc;
}

void sgt_journal_invalid(sgt_journal *j, sgt_invalid_at at)
{
    const sgt_invalid_at *last = j->invalid_count ? &j->invalid[j->invalid_count - 1] : NULL;
    /* Ignore a position that is already recorded: a resumed run reads some text a second time, and
     * reports the ill-formed UTF-8 in this text again. */
    if (last && (at.file < last->file || (at.file == last->file && at.offset <= last->offset)))
        return;
    if (j->invalid_count < SGT_INVALID_LISTED) j->invalid[j->invalid_count++] = at;
}

int sgt_journal_commit(sgt_journal *j, const sgt_checkpoint *now, sgt_error *err)
{
    sgt_journal next = *j;
    next.now = *now;
    next.begun = 1;
    const int rc = write_journal(&next, err);
    if (!rc) *j = next; /* if writing failed, *j still equals the journal on disk */
    return rc;
}

/* ---- reading ---- */

/* Fill in *j from `all`, the JSON object read from the file. Return 1 if it is an undamaged journal
 * in the format of this version of sgt; otherwise return 0. */
static int unpack(sgt_journal *j, json_t *all)
{
    uint64_t numbers[NUMBERS];
    json_t *options, *checkpoint, *invalid, *place;
    const char *fingerprint, *hash;
    int version;
    size_t i;
    if (json_unpack(all, "{s:i, s:s, s:o, s:i, s:o, s:s, s:o}", "version", &version, "fingerprint",
                    &fingerprint, "options", &options, "begun", &j->begun, "checkpoint",
                    &checkpoint, "xxh3", &hash, "invalid", &invalid) < 0 ||
        version != VERSION || !json_is_object(options) || json_array_size(checkpoint) != NUMBERS ||
        json_array_size(invalid) > SGT_INVALID_LISTED)
        return 0;
    j->fingerprint = strtoull(fingerprint, NULL, 16);
    j->options = sgt_json_dumps(options, 0);
    for (i = 0; i < NUMBERS; i++)
        numbers[i] = (uint64_t)json_integer_value(json_array_get(checkpoint, i));
    memcpy(&j->now, numbers, sizeof numbers);
    for (i = 0; (place = json_array_get(invalid, i)); i++) {
        const sgt_invalid_at at = {(uint64_t)json_integer_value(json_array_get(place, 0)),
                                   (uint64_t)json_integer_value(json_array_get(place, 1))};
        sgt_journal_invalid(j, at);
    }
    return strtoull(hash, NULL, 16) == hash_checkpoint(j);
}

static int read_journal(sgt_journal *j, sgt_error *err)
{
    json_error_t why;
    char *text;
    size_t n;
    int rc = sgt_file_get(&text, &n, j->path, MAX_BYTES, err);
    if (rc < 0) return rc;
    if ((rc = sgt_json_fits(text, n, MOST_VALUES, j->path, err)) == 0) {
        json_t *all = json_loadb(text, n, 0, &why);
        const int good = unpack(j, all);
        /* If memory has run out, report this instead of a damaged journal. */
        if ((!all && json_error_code(&why) == json_error_out_of_memory) || (good && !j->options))
            rc = sgt_fail_memory(err, j->path);
        else if (!good)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: damaged, or written by a different version of sgt (finish with that "
                          "version, or --force starts over)",
                          j->path);
        json_decref(all);
    }
    free(text);
    return rc;
}

int sgt_journal_open(sgt_journal **out, const char *work, sgt_error *err)
{
    sgt_journal *j = calloc(1, sizeof *j);
    *out = NULL;
    if (!j) return sgt_fail_memory(err, work);
    sgt_path(j->path, work, "journal");
    const int gone = sgt_file_gone(j->path), rc = gone ? SGT_OK : read_journal(j, err);
    if (rc < 0 || gone) sgt_journal_close(j);
    else *out = j;
    return rc;
}

void sgt_journal_close(sgt_journal *j)
{
    if (!j) return;
    free(j->options);
    free(j);
}
