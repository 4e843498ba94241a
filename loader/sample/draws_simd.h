/* draws_simd.h: the functions of draws.h, written for vectors of 64-bit lanes. (In plain C, a
 * vector has a single lane.) The file that includes this header defines the type vec and four
 * macros:
 * - LANES: number of lanes per vector
 * - MUL(x, y): product of the lower 32 bits of each lane of x and of y. The upper 32 bits are
 *   ignored, so they need not be cleared
 * - REDUCE(x, m): x if x < m, otherwise x - m
 * - SIDE: number of vectors that are computed at the same time, so that the CPU can overlap their
 *   multiplications */
#include <string.h>

#include "loader/sample/draws.h"

#define GROUP (SIDE * LANES)
_Static_assert(SGT_DRAWS_WIDTH % GROUP == 0, "n is a whole number of groups");

static inline vec load(const uint64_t *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline vec all(uint64_t x) { return (vec){0} + x; }

static void philox(uint64_t *u, uint64_t key, const uint64_t *lo, const uint64_t *hi, size_t n)
{
    const vec m0 = all(0xD2511F53u), m1 = all(0xCD9E8D57u);
    for (size_t i = 0; i < n; i += GROUP) {
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        vec c0[SIDE], c1[SIDE], c2[SIDE], c3[SIDE];
        for (int v = 0; v < SIDE; v++) {
            c0[v] = load(lo + i + v * LANES);
            c2[v] = load(hi + i + v * LANES);
            c1[v] = c0[v] >> 32;
            c3[v] = c2[v] >> 32;
        }
        for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
            for (int v = 0; v < SIDE; v++) {
                vec p0 = MUL(m0, c0[v]), p1 = MUL(m1, c2[v]);
                c0[v] = (p1 >> 32) ^ c1[v] ^ all(k0);
                c2[v] = (p0 >> 32) ^ c3[v] ^ all(k1);
                c1[v] = p1;
                c3[v] = p0;
            }
        for (int v = 0; v < SIDE; v++) {
            vec x = c1[v] << 32 | (c0[v] & 0xffffffffu);
            memcpy(u + i + v * LANES, &x, sizeof x);
        }
    }
}

static inline vec fold(vec z) { return z >> 32 ^ z; }

static inline vec turn(vec v, vec other, vec key, vec m)
{
    vec u = fold(MUL(other ^ key, all(0xD2511F53u)));
    u = fold(MUL(u, all(0xCD9E8D57u)));
    vec sum = v + (MUL(u, m) >> 32);
    return REDUCE(sum, m);
}

static void permute(uint64_t *at, const sgt_permutation *p, size_t n)
{
    const vec a = all(p->a), b = all(p->b);
    for (size_t i = 0; i < n; i += GROUP) {
        uint64_t xs[GROUP], ys[GROUP];
        for (unsigned k = 0; k < GROUP; k++) {
            xs[k] = at[i + k] / p->b;
            ys[k] = at[i + k] % p->b;
        }
        vec x[SIDE], y[SIDE];
        for (int v = 0; v < SIDE; v++) {
            x[v] = load(xs + v * LANES);
            y[v] = load(ys + v * LANES);
        }
        for (unsigned r = 0; r < SGT_PERMUTE_ROUNDS; r += 2)
            for (int v = 0; v < SIDE; v++) {
                x[v] = turn(x[v], y[v], all(p->keys[r]), a);
                y[v] = turn(y[v], x[v], all(p->keys[r + 1]), b);
            }
        for (int v = 0; v < SIDE; v++) {
            vec back = MUL(x[v], b) + y[v];
            memcpy(at + i + v * LANES, &back, sizeof back);
        }
    }
}
