/* large.h: tools for tests of index arithmetic beyond 2^32 numbers. Arrays are sparse: they have
 * tens of GiB of addresses, but only the pages that were written exist. All other pages are read as
 * zeros. Only the last blocks of each grid run (blocks.h). Their results must have the same bits as
 * the kernel's results for the same rows in small arrays. cuda_cases_*.cpp compare those results
 * with kernels/ref. Sizes are GPT-2 XL's: 1600 channels in 25 heads, 8192 tokens per row, 50,304
 * logits per token. */
#ifndef SGT_HOST_LARGE_H
#define SGT_HOST_LARGE_H

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "tests/kernels/cuda_types.h"
#include "kernels/dropout.h"
#include "tests/kernels/host/blocks.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/host.h"

static constexpr size_t HUGE_COUNT = (size_t)1 << 32, C = 1600, LENGTH = 8192, HEADS = 25, D = 64;

/* Two arrays: x[0] has n numbers, and x[1] has only the last k of these numbers. */
template <class T> struct Tail {
    T *at[2];
    size_t n, k;
    T *operator[](int alone) const { return at[alone]; }
};

/* Sparse arrays of one test case, which its end frees. */
class Sparse
{
    check *t;
    std::vector<std::pair<void *, size_t>> maps;

  public:
    explicit Sparse(check *t_) : t(t_) {}
    ~Sparse()
    {
        for (auto &m : maps) munmap(m.first, m.second);
    }
    Sparse(const Sparse &) = delete;
    Sparse &operator=(const Sparse &) = delete;

    /* Return an array of n zeros, which an inaccessible page follows. */
    template <class T> T *array(size_t n)
    {
        const size_t page = 4096, bytes = (n * sizeof(T) + page - 1) / page * page;
        void *p = mmap(nullptr, bytes + page, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED || mprotect(p, bytes, PROT_READ | PROT_WRITE))
            host::fail("no addresses for %zu bytes, sparse", bytes);
        maps.emplace_back(p, bytes + page);
        return static_cast<T *>(p);
    }

    template <class T> void fill(T *to, size_t n)
    {
        const float *x = check_random(t, n, 1);
        for (size_t i = 0; i < n; i++) to[i] = dev::from_float<T>(x[i]);
    }

    /* Return an array of n numbers, of which the last k are random. Element [1] points to these k
     * numbers in the array, and is not a copy. */
    template <class T> Tail<T> input(size_t n, size_t k)
    {
        T *x = array<T>(n);
        fill(x + n - k, k);
        return {{x, x + n - k}, n, k};
    }

    /* As input(), but for a kernel that changes the array: element [1] is a copy. */
    template <class T> Tail<T> inout(size_t n, size_t k)
    {
        Tail<T> x = input<T>(n, k);
        x.at[1] = cuda_copy(t, x[1], k);
        return x;
    }

    template <class T> Tail<T> output(size_t n, size_t k)
    {
        return {{array<T>(n), array<T>(k)}, n, k};
    }

    /* Check that the last `seen` numbers of both arrays have the same bits, and are not all 0. */
    template <class T> void same(const char *name, const Tail<T> &x, size_t seen = SIZE_MAX)
    {
        bool written = false;
        for (size_t i = x.k - std::min(x.k, seen), from = x.n - x.k; i < x.k; i++) {
            if (memcmp(x[0] + from + i, x[1] + i, sizeof(T)) != 0) {
                check_fail(t, "%s[%zu of %zu]: %g, not %g", name, from + i, x.n,
                           (double)dev::to_float(x[0][from + i]), (double)dev::to_float(x[1][i]));
                return;
            }
            written = written || dev::to_float(x[1][i]) != 0;
        }
        if (!written) check_fail(t, "%s: nothing was written", name);
    }
};

/* Call f(1), which runs a kernel on the small arrays, and then f(0), which runs the kernel on the
 * large arrays. Only the last `blocks` blocks of each grid run. */
template <class F> static inline void at_the_end(size_t blocks, F f)
{
    host::OnlyEdges edges(0, blocks);
    f(1);
    f(0);
}

/* Dropout of all rows, and dropout of only the rows from `first` on, as in a step that begins
 * there. */
struct Drops {
    sgt_cuda_dropout at[2];
    Drops(check *t, size_t row_elements, size_t first, sgt_dropout_site site, float rate)
    {
        const sgt_cuda_place places[] = {{11, 5, 0, 1}, {11, 5, first, 1}};
        const sgt_cuda_place *where = cuda_copy(t, places, 2);
        for (int i = 0; i < 2; i++) at[i] = {where + i, row_elements, 3, (uint32_t)site, rate};
    }
};

/* A test case with sparse memory. It runs once, because the placement within pages does not matter
 * for it. */
#define LARGE_CASE(name)                        \
    static void large_##name(check *t);         \
    CUDA_CASE(cuda_large_##name)                \
    {                                           \
        if (t->placement == 0) large_##name(t); \
    }                                           \
    static void large_##name(check *t)

#endif
