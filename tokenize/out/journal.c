/* journal.c: write and read the journal. */
#include "tokenize/out/journal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/json.h"

#define VERSION 3
#define MAX_BYTES ((size_t)64 << 20) /* largest journal; the options are nearly all of it */
#define MOST_VALUES 1000             /* of JSON in it; the options are one text */
#define NUMBERS (sizeof(sgt_checkpoint) / sizeof(uint64_t))

/* ---- writing ---- */

/* Return the numbers of the last checkpoint, null if there is none. NULL: out of memory. */
static json_t *pack_checkpoint(const sgt_journal *j)
{
    uint64_t numbers[NUMBERS];
    json_t *all = j->begun ? json_array() : json_null();
    int bad = 0;
    memcpy(numbers, &j->now, sizeof numbers);
    for (size_t i = 0; j->begun && i < NUMBERS; i++)
        bad |= json_array_append_new(all, json_integer((json_int_t)numbers[i]));
    if (!bad) return all;
    json_decref(all);
    return NULL;
}

static json_t *pack_invalid(const sgt_journal *j)
{
    json_t *all = json_array();
    int bad = 0;
    for (size_t i = 0; i < j->invalid_count; i++)
        bad |= json_array_append_new(all, json_pack("[I, I]", (json_int_t)j->invalid[i].file,
                                                    (json_int_t)j->invalid[i].offset));
    if (!bad) return all;
    json_decref(all);
    return NULL;
}

/* Return the checksum of the checkpoint. */
static uint64_t hash_checkpoint(const sgt_journal *j)
{
    return XXH3_64bits(&j->now, sizeof j->now);
}

static int write_journal(const sgt_journal *j, sgt_error *err)
{
    json_t *all = json_pack("{s:i, s:o, s:s, s:o, s:o, s:o}", "version", VERSION, "fingerprint",
                            sgt_json_hex(j->fingerprint), "options", j->options, "checkpoint",
                            pack_checkpoint(j), "xxh3", sgt_json_hex(hash_checkpoint(j)), "invalid",
                            pack_invalid(j));
    char *text = sgt_json_dumps(all, 0);
    json_decref(all);
    const int rc =
        text ? sgt_file_put(j->path, text, strlen(text), err) : sgt_fail_memory(err, j->path);
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
    /* the text is read again, and the place is known */
    if (last && (at.file < last->file || (at.file == last->file && at.offset <= last->offset)))
        return;
    if (j->invalid_count < SGT_INVALID_LISTED) j->invalid[j->invalid_count++] = at;
}

int sgt_journal_commit(sgt_journal *j, const sgt_checkpoint *now, sgt_error *err)
{
    const sgt_checkpoint before = j->now;
    const int begun = j->begun;
    j->now = *now;
    j->begun = 1;
    const int rc = write_journal(j, err);
    if (rc < 0) { /* forget what is not on disk */
        j->now = before;
        j->begun = begun;
    }
    return rc;
}

/* ---- reading ---- */

/* Fill in *j from the JSON object. Return whether it is a journal of this version. */
static int unpack(sgt_journal *j, json_t *all)
{
    uint64_t numbers[NUMBERS];
    json_t *checkpoint, *invalid, *place;
    const char *fingerprint, *options, *hash;
    int version;
    size_t i;
    if (json_unpack(all, "{s:i, s:s, s:s, s:o, s:s, s:o}", "version", &version, "fingerprint",
                    &fingerprint, "options", &options, "checkpoint", &checkpoint, "xxh3", &hash,
                    "invalid", &invalid) < 0 ||
        version != VERSION || json_array_size(invalid) > SGT_INVALID_LISTED)
        return 0;
    j->fingerprint = strtoull(fingerprint, NULL, 16);
    j->options = strdup(options);
    j->begun = !json_is_null(checkpoint);
    for (i = 0; i < NUMBERS; i++)
        numbers[i] = (uint64_t)json_integer_value(json_array_get(checkpoint, i));
    memcpy(&j->now, numbers, sizeof numbers);
    json_array_foreach(invalid, i, place) sgt_journal_invalid(
        j, (sgt_invalid_at){(uint64_t)json_integer_value(json_array_get(place, 0)),
                            (uint64_t)json_integer_value(json_array_get(place, 1))});
    return json_array_size(checkpoint) == (j->begun ? NUMBERS : 0) &&
           strtoull(hash, NULL, 16) == hash_checkpoint(j);
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
        /* Out of memory is not damage */
        if ((!all && json_error_code(&why) == json_error_out_of_memory) || (good && !j->options))
            rc = sgt_fail_memory(err, j->path);
        else if (!good)
            rc =
                sgt_fail(err, SGT_EFORMAT,
                         "%s: damaged, or of a run that another version began (finish it with that "
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
