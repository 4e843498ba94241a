/* journal.c: any journal that can be read can also be written and read again, and is then the
 * same. */
#include "tests/fuzz/fuzz.h"
#include "tokenize/out/journal.h"

void fuzz_journal(const uint8_t *data, size_t size)
{
    sgt_journal *j = NULL, *again = NULL;
    sgt_error err;
    put_file("journal", data, size);
    int rc = sgt_journal_open(&j, own_folder, &err);
    if (rc < 0) must_say(rc, &err);
    if (!j) return;
    sgt_checkpoint now = j->now;
    now.offset++;
    must(sgt_journal_commit(j, &now, &err) == 0, "it goes on");
    must(sgt_journal_open(&again, own_folder, &err) == 0 && again, "and that can be read");
    must(again->begun && !memcmp(&again->now, &now, sizeof now) &&
             again->fingerprint == j->fingerprint && !strcmp(again->options, j->options) &&
             again->invalid_count == j->invalid_count &&
             !memcmp(again->invalid, j->invalid, sizeof j->invalid),
         "it says what was said");
    sgt_journal_close(again);
    sgt_journal_close(j);
}
