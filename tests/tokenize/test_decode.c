/* test_decode.c: ids back to bytes. */
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/tokenize/common.h"

static void comes_back(const sgt_vocab *v, sgt_encoder *e, const uint8_t *s, size_t n,
                       uint64_t seed)
{
    /* only as much room as sgt_encode needs, so that sanitizers find writes beyond it */
    scoped_memory uint16_t *ids = malloc(n * sizeof *ids + 1);
    scoped_memory char *text = NULL;
    size_t m = 0, count = encode(e, s, n, ids);
    cr_assert_leq(count, n);
    must(sgt_decode(v, ids, count, &text, &m, why));
    cr_assert_eq(m, n, "SEED=%llu", (unsigned long long)seed);
    cr_assert_arr_eq(text, s, n, "SEED=%llu", (unsigned long long)seed);
    cr_assert_eq(text[n], 0);
}

Test(decode, any_bytes_come_back)
{
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    for (int i = 0; i < 4000; i++) {
        size_t n = i < 40 ? (size_t)i : below(&r, i % 50 ? 400 : 20000);
        scoped_memory uint8_t *s = malloc(n + 1); /* only as much room as the text needs */
        if (i % 2) n = hard_text(&r, s, n, 1);
        else
            for (size_t j = 0; j < n; j++) s[j] = (uint8_t)below(&r, 256);
        s = realloc(s, n + !n);
        comes_back(v, e, s, n, seed);
    }
}

Test(decode, refuses_an_id_that_is_none)
{
    static const uint16_t ids[] = {15496, 50256, 50257};
    scoped(sgt_vocab) *v = gpt2();
    scoped_memory char *text = NULL;
    size_t n = 0;
    expect_failure(sgt_decode(v, ids, 3, &text, &n, why), SGT_EFORMAT,
                   "token 2: id 50257 is not in the vocabulary gpt2 (below 50257)");
    cr_assert_null(text);
    must(sgt_decode(v, ids, 2, &text, &n, why));
    cr_assert_str_eq(text, "Hello<|endoftext|>");
}
