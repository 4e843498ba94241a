/* test_masking.c: --document-mask. The loader knows document starts from .idx files or from the
 * end-of-text id. If it does not report them, the backend searches for that id.
 * tests/step/documents.c tests the masking itself. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/fixture.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"
#include "loader/shards/shard.h"

TestSuite(masking, .init = make_data, .fini = remove_folder);

static sgt_config masked(uint64_t steps)
{
    sgt_config s = tiny(steps);
    s.step.documents = 1;
    return s;
}

/* Write data.idx for data.bin. A document begins at each token for which `begins` returns 1. */
static void put_index(int (*begins)(uint16_t id, size_t at))
{
    size_t n, count = 0;
    scoped_memory char *shard = get_file("data.bin", &n);
    const uint16_t *ids = (const uint16_t *)(const void *)(shard + SGT_SHARD_HEADER);
    scoped_memory uint64_t *index = malloc(4 * n);
    for (size_t i = 0; i < (n - SGT_SHARD_HEADER) / 2; i++)
        if (begins(ids[i], i)) index[count++] = i;
    put_file("data.idx", index, 8 * count);
}

static int at_newlines(uint16_t id, size_t at) { return (void)at, id == '\n'; }
static int at_sevenths(uint16_t id, size_t at) { return (void)id, at % 7 == 0; }
static int nowhere(uint16_t id, size_t at) { return (void)id, (void)at, 0; }

static int same_run(const char *a, const char *b)
{
    scoped_memory char *x = facts(a), *y = facts(b);
    int same = strcmp(x, y) == 0;
    return same;
}

Test(masking, the_index_says_where_documents_begin)
{
    must_train(tiny(4), "plain", 0);
    must_train(masked(4), "by-id", 0);
    put_index(at_newlines);
    must_train(masked(4), "by-index", 0);
    put_index(at_sevenths);
    must_train(masked(4), "elsewhere", 0);
    put_index(nowhere);
    must_train(masked(4), "nowhere", 0);
    cr_expect(same_run("by-id", "by-index"));
    cr_expect(same_run("plain", "nowhere"), "rows of one document are rows without a mask");
    cr_expect(!same_run("plain", "by-id") && !same_run("by-id", "elsewhere") &&
              !same_run("plain", "elsewhere"));
}
