/* large.h: tools for tests of index arithmetic beyond 2^32 numbers. Arrays are sparse: they have
 * tens of GiB of addresses, but only the pages that were written exist, and others are read as
 * zeros. Only the first and last blocks of each grid run (blocks.h). Their results must have the
 * same bits as the kernel's results for the same rows at the start of smaller arrays.
 * cuda_cases_*.cpp compare those with kernels/ref. Sizes are GPT-2 XL's: 1600 channels in 25 heads,
 * 8192 tokens per row, 50,304 logits per token. */
#ifndef SGT_HOST_LARGE_H
#define SGT_HOST_LARGE_H

#include <string.h>
#include <sys/mman.h>

#include <vector>

#include "tests/kernels/cuda_types.h"
#include "kernels/dropout.h"
#include "tests/kernels/host/blocks.h"
#include "tests/kernels/host/check-cuda.h"

static constexpr size_t HUGE_COUNT = (size_t)1 << 32, C = 1600, LENGTH = 8192, HEADS = 25, D = 64;

/* Sparse arrays of one case, freed at its end. */
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

    /* Return n zeros, followed by an inaccessible page. If that fails, return NULL; the case has
     * then failed. */
    template <class T> T *array(size_t n)
    {
        const size_t page = 4096, bytes = (n * sizeof(T) + page - 1) / page * page;
        void *p = mmap(nullptr, bytes + page, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED || mprotect(p, bytes, PROT_READ | PROT_WRITE)) {
            check_fail(t, "no addresses for %zu bytes, sparse", bytes);
            return nullptr;
        }
        maps.emplace_back(p, bytes + page);
        return static_cast<T *>(p);
    }
};

/* Cases with sparse memory run once: their placement within pages does not matter. */
#define LARGE_CASE(name)                        \
    static void large_##name(check *t);         \
    CUDA_CASE(cuda_large_##name)                \
    {                                           \
        if (t->placement == 0) large_##name(t); \
    }                                           \
    static void large_##name(check *t)

template <class T> static inline void fill(check *t, T *to, size_t n)
{
    const float *x = check_random(t, n, 1);
    for (size_t i = 0; i < n; i++) to[i] = dev::from_float<T>(x[i]);
}

template <class T>
static inline void same(check *t, const char *name, const T *got, const T *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(got + i, want + i, sizeof(T)) != 0) {
            check_fail(t, "%s[%zu of %zu]: %g, not %g", name, i, n, (double)dev::to_float(got[i]),
                       (double)dev::to_float(want[i]));
            return;
        }
}

/* Return whether any number is not 0, so that a comparison means something. */
template <class T> static inline bool written(const T *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dev::to_float(x[i]) != 0) return true;
    return false;
}

#endif
