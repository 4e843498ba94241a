/* journal.c: only the journal's lines with valid checksums are read, and the rest of the file is
 * cut off. Read again, the journal gives the same and can be continued. The target appends a valid
 * checksum to each line of the input, unless the line begins with '!'. */
#include <xxhash.h>

#include "tests/fuzz/fuzz.h"
#include "tokenize/out/journal.h"

static void put_journal(const uint8_t *data, size_t size)
{
    size_t room = size * 20 + 64, n = 0;
    scoped_memory char *text = malloc(room);
    must(text != NULL, "there is memory");
    for (const uint8_t *line = data, *end; line < data + size; line = end + 1) {
        end = memchr(line, '\n', (size_t)(data + size - line));
        if (!end) end = data + size;
        int bare = *line == '!';
        size_t length = (size_t)(end - line) - (size_t)bare;
        memcpy(text + n, line + bare, length);
        if (!bare)
            sprintf(text + n + length, " #%016llx", (unsigned long long)XXH3_64bits(line, length));
        n += length + (bare ? 0 : 18);
        text[n++] = '\n';
    }
    put_file("journal", text, n);
}

static void check_same(const sgt_journal *a, const sgt_journal *b)
{
    must(a->fingerprint == b->fingerprint && !strcmp(a->options, b->options) &&
             a->states == b->states && !memcmp(&a->now, &b->now, sizeof a->now) &&
             a->invalid_count == b->invalid_count,
         "it is the same again");
    for (int s = 0; s < SGT_SPLITS; s++) {
        must(a->count[s] == b->count[s], "it knows as many shards");
        for (size_t i = 0; i < a->count[s]; i++) {
            const sgt_manifest_shard *x = &a->shards[s][i], *y = &b->shards[s][i];
            must(!strcmp(x->file, y->file) && x->tokens == y->tokens, "the same ones");
            must(!strchr(x->file, '/'), "in the folder");
        }
    }
}

void fuzz_journal(const uint8_t *data, size_t size)
{
    sgt_journal *j = NULL, *again = NULL;
    sgt_error err;
    put_journal(data, size);
    int rc = sgt_journal_open(&j, own_folder, &err);
    if (rc < 0) must_say(rc, &err);
    if (!j) return;
    must(sgt_journal_open(&again, own_folder, &err) == 0 && again,
         "what was read can be read again");
    check_same(j, again);
    sgt_journal_close(again);
    const sgt_manifest_shard done[SGT_SPLITS] = {{.tokens = 1, .split = "train"}};
    sgt_checkpoint now = j->now;
    now.offset++;
    must(sgt_journal_commit(j, done, &now, &err) == 0, "it goes on");
    must(sgt_journal_open(&again, own_folder, &err) == 0 && again, "and that can be read");
    must(again->states == j->states && again->count[0] == j->count[0] &&
             again->now.offset == now.offset,
         "it says what was said");
    sgt_journal_close(again);
    sgt_journal_close(j);
}
