/* nccl.cpp: NCCL for the CUDA backend that runs on a CPU, between processes of one machine. A call
 * waits in its stream's queue like all other work. When it runs, it waits for the same call of the
 * other ranks, and exchanges data through a file that all ranks have mapped. Sums are added in rank
 * order.
 *
 * If ranks make different calls, that is a failure, which names both. It is also a failure if a
 * rank waits for the others for about a minute. If SGT_HOST_NCCL has trace=FILE, FILE.RANK gets a
 * line for each call that is put on a stream: name, count of numbers, and the number of kernels
 * before it. */
#include "kernels/cuda/nccl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/host/memory.h"
#include "tests/kernels/host/state.h"
#include "tests/kernels/host/streams.h"

namespace
{

constexpr int MAX_RANKS = 16;
/* bytes that a rank makes available to the others at a time */
constexpr size_t AREA = (size_t)1 << 20;

enum Kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST };
const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};

struct Call {
    uint64_t number; /* number of the call on this communicator, from 0 */
    Kind kind;
    size_t count;
    int type, root;
    bool operator==(const Call &c) const
    {
        return number == c.number && kind == c.kind && count == c.count && type == c.type &&
               root == c.root;
    }
};

struct Shared {
    /* came: ranks that wait in the barrier; turn: number of barriers completed */
    std::atomic<uint32_t> came, turn;
    Call calls[MAX_RANKS];
    unsigned char areas[MAX_RANKS][AREA];
};

size_t width(int type) { return type == SGT_NCCL_FLOAT64 ? 8 : type == SGT_NCCL_FLOAT32 ? 4 : 2; }

std::string text(const Call &c)
{
    char line[128];
    snprintf(line, sizeof line, "call %llu, %s of %zu numbers of type %d",
             (unsigned long long)c.number, names[c.kind], c.count, c.type);
    return line;
}

} // namespace

struct ncclComm {
    Shared *shared = nullptr;
    int ranks, rank;
    uint64_t calls = 0;
    bool aborted = false;
    cudaStream_t stream = nullptr; /* stream of the first call; all calls use it */
    FILE *trace = nullptr;

    /* Barrier over all ranks: the last rank to arrive releases the others. */
    void barrier(const char *what)
    {
        const uint32_t turn = shared->turn;
        if (++shared->came == (uint32_t)ranks) {
            shared->came = 0;
            shared->turn++;
        }
        for (int naps = 0; shared->turn == turn; naps++) {
            if (naps == 300000)
                host::fail("NCCL: rank %d of %d has waited too long for the others, with %s", rank,
                           ranks, what);
            usleep(100);
        }
    }

    void agree(const Call &c)
    {
        shared->calls[rank] = c;
        barrier(text(c).c_str());
        for (int i = 0; i < ranks; i++)
            if (!(shared->calls[i] == c))
                host::fail("NCCL: rank %d makes %s where rank %d makes %s", rank, text(c).c_str(),
                           i, text(shared->calls[i]).c_str());
    }

    /* Store in `to` the sums over all ranks of n numbers of their areas, from number `from` on. */
    template <class T> void add(T *to, size_t from, size_t n)
    {
        for (size_t i = 0; i < n; i++) {
            T sum = ((T *)shared->areas[0])[from + i];
            for (int r = 1; r < ranks; r++) sum += ((T *)shared->areas[r])[from + i];
            to[i] = sum;
        }
    }

    void add_any(int type, void *to, size_t from, size_t n)
    {
        if (type == SGT_NCCL_FLOAT32) add((float *)to, from, n);
        else if (type == SGT_NCCL_FLOAT64) add((double *)to, from, n);
        else host::fail("NCCL: a sum of numbers of type %d", type);
    }

    /* Do a part of a call, for numbers at .. at + n - 1. */
    void piece(const Call &c, const unsigned char *from, unsigned char *to, size_t at, size_t n)
    {
        size_t w = width(c.type), bytes = n * w, here = at * w, all = c.count * w;
        unsigned char *own = shared->areas[rank];
        if (c.kind == REDUCE_SCATTER)
            for (int r = 0; r < ranks; r++) memcpy(own + r * bytes, from + r * all + here, bytes);
        else if (c.kind != BROADCAST || c.root == rank) memcpy(own, from + here, bytes);
        barrier("a piece of a call");
        if (c.kind == ALL_REDUCE) add_any(c.type, to + here, 0, n);
        else if (c.kind == REDUCE_SCATTER) add_any(c.type, to + here, rank * n, n);
        else if (c.kind == BROADCAST) memcpy(to + here, shared->areas[c.root], bytes);
        else
            for (int r = 0; r < ranks; r++) memcpy(to + r * all + here, shared->areas[r], bytes);
        barrier("the end of a piece"); /* barrier before any rank overwrites its area */
    }

    void run(Call c, const unsigned char *from, unsigned char *to)
    {
        if (aborted) return;
        c.number = calls++;
        agree(c);
        size_t most = AREA / width(c.type) / (c.kind == REDUCE_SCATTER ? ranks : 1);
        for (size_t at = 0; at < c.count; at += most)
            piece(c, from, to, at, c.count - at < most ? c.count - at : most);
    }
};

namespace
{

/* Queues and graphs may use a communicator after the call that destroys it. */
std::vector<std::unique_ptr<ncclComm>> all;

void must_lie(const void *p, size_t bytes, const char *what)
{
    host::Place place;
    if (!host::memory_at(p, bytes, &place) || place != host::DEVICE)
        host::fail("NCCL: %s of %zu bytes at %p: not in one allocation of device memory", what,
                   bytes, p);
}

int queue(Kind kind, const void *from, void *to, size_t count, int type, int root, ncclComm *comm,
          cudaStream_t s)
{
    Call c = {0, kind, count, type, root}; /* the number is set when the call is done */
    size_t bytes = count * width(type), ranks = (size_t)comm->ranks;
    must_lie(from, kind == REDUCE_SCATTER ? ranks * bytes : bytes, "a source");
    must_lie(to, kind == ALL_GATHER ? ranks * bytes : bytes, "a destination");
    if (comm->stream && comm->stream != s) host::fail("NCCL: one communicator on two streams");
    comm->stream = s;
    if (comm->trace)
        fprintf(comm->trace, "%s %zu after %ld kernels\n", names[kind], count,
                host::counts.launches);
    auto work = [=] { comm->run(c, (const unsigned char *)from, (unsigned char *)to); };
    host::enqueue(s, work, names[kind]);
    return 0;
}

int version(int *v)
{
    *v = 22809;
    return 0;
}

const char *error_string(int code) { return code ? "failed" : "no error"; }

const char *last_error(ncclComm *) { return ""; }

/* Open the file of this rank that SGT_HOST_NCCL gives after "trace=". */
FILE *asked_trace(int rank)
{
    const char *words = getenv("SGT_HOST_NCCL"), *word = words ? strstr(words, "trace=") : nullptr;
    if (!word) return nullptr;
    word += strlen("trace=");
    std::string path(word, strcspn(word, " "));
    return fopen((path + "." + std::to_string(rank)).c_str(), "w");
}

int unique_id(sgt_nccl_id *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "/dev/shm/sgt-nccl-XXXXXX");
    int fd = mkstemp(id->bytes);
    if (fd < 0 || ftruncate(fd, sizeof(Shared)) < 0) return 2;
    close(fd);
    return 0;
}

int comm_init_rank(sgt_nccl_comm *out, int ranks, sgt_nccl_id id, int rank)
{
    int fd = open(id.bytes, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ranks > MAX_RANKS) return 2;
    void *p = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) return 2;
    all.emplace_back(new ncclComm);
    ncclComm *c = *out = all.back().get();
    c->shared = (Shared *)p;
    c->ranks = ranks;
    c->rank = rank;
    c->trace = asked_trace(rank);
    c->barrier("the beginning");
    if (rank == 0) unlink(id.bytes);
    return 0;
}

int comm_destroy(ncclComm *) { return 0; }

int comm_abort(ncclComm *comm)
{
    comm->aborted = true;
    return 0;
}

int all_reduce(const void *from, void *to, size_t count, int type, int, ncclComm *comm,
               cudaStream_t s)
{
    return queue(ALL_REDUCE, from, to, count, type, 0, comm, s);
}

int reduce_scatter(const void *from, void *to, size_t count, int type, int, ncclComm *comm,
                   cudaStream_t s)
{
    return queue(REDUCE_SCATTER, from, to, count, type, 0, comm, s);
}

int all_gather(const void *from, void *to, size_t count, int type, ncclComm *comm, cudaStream_t s)
{
    return queue(ALL_GATHER, from, to, count, type, 0, comm, s);
}

int broadcast(const void *from, void *to, size_t count, int type, int root, ncclComm *comm,
              cudaStream_t s)
{
    return queue(BROADCAST, from, to, count, type, root, comm, s);
}

int group() { return 0; }

const sgt_nccl table = {version,      error_string, last_error, unique_id,      comm_init_rank,
                        comm_destroy, comm_abort,   all_reduce, reduce_scatter, all_gather,
                        broadcast,    group,        group};

} // namespace

const sgt_nccl *sgt_nccl_load(sgt_error *) { return &table; }
