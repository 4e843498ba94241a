/* ranks.c: finds the launcher that started this process by its environment variables, and connects
 * every other rank (process) to rank 0 with two TCP connections. The main thread uses the
 * connection DATA for broadcasts, sums and barriers. A separate thread reads the connection LIFE,
 * over which a rank that fails sends the reason to rank 0, and rank 0 tells the other ranks to
 * exit.
 *
 * If the launcher uses MPI, ranks.c loads libsgt-mpi.so, which sends the address on which rank 0
 * listens to every rank, and which exchanges the gradients of ranks on CPUs (`swap`). The TCP
 * connections are needed because ranks that torchrun has started have no MPI, because NCCL cannot
 * connect ranks on CPUs, and because neither library reports in one line which rank has died. */
#include "tools/ranks/ranks.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "loader/base/library.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/ranks/libsgt-mpi/mpi.h"

/* "sgtU", the first word of the first message over each connection (hello). It must be changed with
 * the protocol, so that ranks of different builds reject each other. */
#define MAGIC 0x53746775u
#define JOIN_SECONDS 120
/* time in seconds for which a rank waits for another rank before it prints a notice */
#define SAY_SECONDS 5
/* Time in seconds for which rank 0 waits before it prints why another rank has failed. If rank 0
 * fails within this time, it prints only its own error, because all ranks often fail for the same
 * reason. */
#define GRACE_SECONDS 1
/* Time in seconds for which rank 0 waits before it prints that another rank has died. The time is
 * long enough that rank 0 prints nothing if a launcher is killing all ranks: rank 0 is then killed,
 * too, before the time has passed. The time is less than a second, because mpirun kills the other
 * ranks one second after a rank has died by itself. */
#define DEATH_SECONDS .25
/* Time limit in seconds for an orderly exit after a failure. A failed rank other than 0 waits this
 * long until rank 0 tells it to exit. If rank 0 has failed, it has this long to free its
 * resources. */
#define END_SECONDS 10

/* The first message over a new connection, which every rank other than 0 sends to rank 0. Rank 0
 * answers with MAGIC to accept the connection. */
typedef struct hello {
    uint32_t magic, rank, size, life; /* life: kind of the connection, DATA or LIFE */
    char machine[256];                /* host name of the rank's machine */
    cpu_set_t cores;                  /* CPU cores on which the launcher allows the rank to run */
} hello;

/* Every message over a LIFE connection is an sgt_error. A message to rank 0 reports why a rank has
 * failed. A message from rank 0 tells a rank to exit with the exit code in sgt_error.code or, if
 * this is 0, that all ranks have finished successfully. */

typedef struct net {
    sgt_ranks r; /* must be the first member, because an sgt_ranks * is cast to a net * */
    const char *program;
    /* name of the launcher's environment variable that contains the number of ranks */
    const char *variable;
    /* callback for the notice that this rank is waiting for another rank; NULL after the notice has
     * been sent */
    const sgt_notice *notice;
    /* host name or address on which rank 0 listens; "" for all addresses of its machine */
    char host[256];
    int port;     /* port on which rank 0 listens; 0 to let the system choose a free port */
    int listener; /* socket on which rank 0 listens; -1 if there is none */
    /* Connections to other ranks: the array line[DATA] for data, and the array line[LIFE] for
     * messages about failures, each with one element per rank. In rank 0, element i is the
     * connection to rank i. All other ranks use only element 0, the connection to rank 0. */
    struct pollfd *line[2];
    pthread_t watcher; /* thread that reads the LIFE connections */
    /* in rank 0, 1 if all ranks have finished, otherwise 0; accessed atomically, because the
     * watcher thread reads it */
    int ended;
    /* Mutex that rank 0 locks before it prints the reason why all ranks exit. It is never unlocked
     * after that, so that no other thread prints a second reason. */
    pthread_mutex_t saying;
    int code; /* exit code after give_up */
    /* memory of the arrays line[DATA] and line[LIFE] */
    struct pollfd lines[];
} net;
enum { DATA, LIFE };
#define SUM UINT32_MAX /* value of `root` in `call` for a sum */

static void set(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
static int is_set(const int *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }

/* ---- bytes ---- */

/* Send exactly n bytes if `sends` is 1, or receive exactly n bytes if `sends` is 0. Return 0, or -1
 * if the connection is closed or fails first. */
static int transfer(int fd, void *bytes, size_t n, int sends)
{
    char *p = bytes;
    while (n) {
        ssize_t k = sends ? send(fd, p, n, MSG_NOSIGNAL) : recv(fd, p, n, 0);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}
enum { RECEIVE, SEND };

static void nap(double seconds) { usleep((useconds_t)(1e6 * seconds)); }

/* Set the options of a socket with which the system notices within 25 s that the machine at the
 * other end has died. */
static void keep_alive(int fd)
{
    const struct {
        int level, name, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},   {IPPROTO_TCP, TCP_KEEPIDLE, 10},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 3},
                   {IPPROTO_TCP, TCP_NODELAY, 1},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 25000}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}

/* ---- collective calls ---- */

static int gone(const net *t, uint32_t rank, sgt_error *err)
{
    return sgt_fail(err, SGT_EIO, "rank %u of %u died, so all ranks stop (saved work is kept)",
                    rank, t->r.size);
}

/* Run a collective operation through rank 0. If `root` is a rank, broadcast the n bytes at `bytes`
 * from this rank to all ranks. If `root` is SUM, the n bytes are an array of doubles: rank 0 adds
 * up the arrays of all ranks element by element, and sends the sums to every rank. part: scratch
 * buffer of n bytes for a sum; otherwise NULL.
 *
 * First, each rank sends `root` and n to rank 0, which compares them with its own values, because
 * ranks that make different calls would otherwise wait for each other forever. */
static int call(sgt_ranks *r, uint32_t root, void *bytes, size_t n, double *part, sgt_error *err)
{
    const net *t = (const net *)r;
    const struct pollfd *line = t->line[DATA];
    uint64_t mine[] = {root, n}, theirs[2];
    double *x = bytes;
    if (r->rank && (transfer(line->fd, mine, sizeof mine, SEND) < 0 ||
                    ((root == SUM || root == r->rank) && transfer(line->fd, bytes, n, SEND) < 0) ||
                    (root != r->rank && transfer(line->fd, bytes, n, RECEIVE) < 0)))
        return gone(t, 0, err);
    for (uint32_t i = 1; !r->rank && i < r->size; i++) {
        if (transfer(line[i].fd, theirs, sizeof theirs, RECEIVE) < 0) return gone(t, i, err);
        if (memcmp(mine, theirs, sizeof mine) != 0)
            return sgt_fail(
                err, SGT_EIO,
                "ranks are out of step: rank %u is at a different point than rank 0 (run "
                "the same command on all ranks)",
                i);
        if ((root == SUM || root == i) && transfer(line[i].fd, part ? part : bytes, n, RECEIVE) < 0)
            return gone(t, i, err);
        for (size_t j = 0; part && j < n / sizeof *x; j++) x[j] += part[j];
    }
    for (uint32_t i = 1; !r->rank && i < r->size; i++)
        if (i != root && transfer(line[i].fd, bytes, n, SEND) < 0) return gone(t, i, err);
    return SGT_OK;
}

static int broadcast(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err)
{
    return call(r, root, bytes, n, NULL, err);
}

static int sum(sgt_ranks *r, double *x, size_t n, sgt_error *err)
{
    double *part = malloc(n * sizeof *x);
    if (!part) return sgt_fail_memory(err, "ranks");
    int rc = call(r, SUM, x, n * sizeof *x, part, err);
    free(part);
    return rc;
}

static int barrier(sgt_ranks *r, sgt_error *err)
{
    double none = 0;
    return sum(r, &none, 1, err);
}

/* ---- watching ---- */

static void end_others(const net *t, int code)
{
    sgt_error n = {.code = code};
    for (uint32_t i = 1; t->r.rank == 0 && i < t->r.size; i++)
        transfer(t->line[LIFE][i].fd, &n, sizeof n, SEND);
}

/* Make all ranks exit after END_SECONDS. Rank 0 calls this function in its watcher thread after it
 * has failed, because its main thread may be blocked, for example by a device, or by a program that
 * does not read its output. */
static _Noreturn void end_late(const net *t)
{
    nap(END_SECONDS);
    end_others(t, t->code);
    quick_exit(t->code);
}

/* Make all ranks exit, because this rank has failed. Only the first call has an effect.
 * - A rank other than 0 sends the reason to rank 0, and exits.
 * - Rank 0 prints the reason, unless it is an interrupt, which the program reports later. After
 *   that, give_up returns, so that the program can free its resources. sgt_ranks_close makes the
 *   other ranks exit. */
static void give_up(sgt_ranks *r, const sgt_error *why)
{
    net *t = (net *)r;
    sgt_error n = {.code = why->code};
    if (is_set(&r->given_up)) return;
    t->code = sgt_exit_code(why->code);
    set(&r->given_up);
    if (r->rank) {
        snprintf(n.text, sizeof n.text, "%s", why->text);
        transfer(t->line[LIFE][0].fd, &n, sizeof n, SEND);
        /* Wait until the watcher thread ends this process, because rank 0 has answered. This
         * usually takes much less time. */
        nap(END_SECONDS);
        quick_exit(t->code);
    }
    pthread_mutex_lock(&t->saying);
    if (why->code != SGT_ESTOPPED) sgt_talk_line(t->program, why->text);
    if (why->code == SGT_EUSAGE) fprintf(stderr, "try '%s --help'\n", t->program);
}

/* Watcher thread of rank 0: wait until another rank fails or dies, print the reason, and make all
 * ranks exit, unless rank 0 fails first. If the reason is an interrupt, the message names no rank,
 * because an interrupt is meant for all ranks. */
static void *watch_others(void *ctx)
{
    net *t = ctx;
    uint32_t i = 1;
    sgt_error n, bad;
    while (!is_set(&t->r.given_up) && poll(t->line[LIFE] + 1, t->r.size - 1, 50) <= 0)
        if (is_set(&t->ended)) return NULL;
    if (is_set(&t->r.given_up)) end_late(t);
    while (!t->line[LIFE][i].revents) i++;
    int dead = transfer(t->line[LIFE][i].fd, &n, sizeof n, RECEIVE) < 0;
    n.text[sizeof n.text - 1] = 0;
    if (dead) gone(t, i, &bad);
    else if (n.code == SGT_ESTOPPED) sgt_fail(&bad, n.code, "%s", n.text);
    else sgt_fail(&bad, n.code, "rank %u: %s", i, n.text);
    nap(dead ? DEATH_SECONDS : GRACE_SECONDS);
    if (pthread_mutex_trylock(&t->saying) != 0) end_late(t);
    sgt_talk_line(t->program, bad.text);
    end_others(t, sgt_exit_code(bad.code));
    quick_exit(sgt_exit_code(bad.code));
}

/* Watcher thread of a rank other than 0: wait until rank 0 tells this process to exit, or until
 * rank 0 dies. */
static void *watch_first(void *ctx)
{
    const net *t = ctx;
    sgt_error n;
    if (transfer(t->line[LIFE][0].fd, &n, sizeof n, RECEIVE) < 0) {
        gone(t, 0, &n);
        if (t->r.rank == 1) sgt_talk_line(t->program, n.text);
        quick_exit(SGT_EXIT_FAILED);
    }
    if (n.code) quick_exit(n.code);
    return NULL;
}

/* ---- joining ---- */

/* Return a socket that listens on the address t->host and t->port if `listens` is 1, or that is
 * connected to this address if `listens` is 0. On an error, return -1 and set errno, to ENXIO if
 * the host name is unknown. */
static int open_socket(const net *t, int listens)
{
    struct addrinfo *found = NULL, hints = {.ai_family = AF_UNSPEC,
                                            .ai_socktype = SOCK_STREAM,
                                            .ai_flags = listens ? AI_PASSIVE : 0};
    char port[16];
    int fd = -1, on = 1, failed = 0;
    snprintf(port, sizeof port, "%d", t->port);
    int code = getaddrinfo(*t->host ? t->host : NULL, port, &hints, &found);
    if (code && code != EAI_SYSTEM) errno = ENXIO;
    if (code) return -1;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && listens) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd >= 0 && listens && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 128) == 0)
            break;
        if (fd >= 0 && !listens && connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
        failed = errno;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    errno = failed;
    return fd;
}

/* Open the socket on which rank 0 listens. If t->port is 0, let the system choose a port, and set
 * t->port to it. */
static int listen_first(net *t, sgt_error *err)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    t->listener = open_socket(t, 1);
    if (t->listener < 0 && errno == ENXIO)
        return sgt_fail(err, SGT_EIO, "MASTER_ADDR=%s: unknown host", t->host);
    if (t->listener < 0 || getsockname(t->listener, (struct sockaddr *)&a, &n) < 0)
        return sgt_fail(err, SGT_EIO, "rank 0 cannot listen at %s, port %d: %s%s",
                        *t->host ? t->host : "any address", t->port, strerror(errno),
                        errno == EADDRINUSE
                            ? " (set a different MASTER_PORT: rank 0 listens on the port after it)"
                            : "");
    t->port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                            : ((struct sockaddr_in *)&a)->sin_port);
    return SGT_OK;
}

/* Set the time limit in seconds for receiving on a socket; 0 for no limit. */
static void set_patience(int fd, int seconds)
{
    struct timeval patience = {.tv_sec = seconds};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

/* Return 1 if a connection from another rank is still open, otherwise 0. (If rank 0 does not answer
 * in time, a rank closes its connection and connects again.) */
static int is_open(int fd)
{
    char next;
    if (fd < 0) return 0;
    const ssize_t n = recv(fd, &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

/* Receive the first message (hello) over a new connection. If the sender is a rank of this job,
 * answer, keep the connection, and store the message in all[], at the index of the rank. Otherwise,
 * close the connection, and return SGT_EUSAGE if the sender is a rank of another job. */
static int greet(net *t, int fd, hello *all, sgt_error *err)
{
    hello h;
    set_patience(fd, SAY_SECONDS);
    if (transfer(fd, &h, sizeof h, RECEIVE) < 0 || h.magic != MAGIC || h.life > LIFE ||
        transfer(fd, &h.magic, sizeof h.magic, SEND) < 0) {
        close(fd);
        return SGT_OK;
    }
    if (h.size != t->r.size || h.rank == 0 || h.rank >= t->r.size ||
        is_open(t->line[h.life][h.rank].fd)) {
        close(fd);
        return sgt_fail(err, SGT_EUSAGE,
                        "rank %u of %u tried to join, but this run has %u ranks and each joins "
                        "once (does another run use this address?)",
                        h.rank, h.size, t->r.size);
    }
    set_patience(fd, 0);
    keep_alive(fd);
    h.machine[sizeof h.machine - 1] = 0;
    all[h.rank] = h;
    if (t->line[h.life][h.rank].fd >= 0) close(t->line[h.life][h.rank].fd);
    t->line[h.life][h.rank].fd = fd;
    return SGT_OK;
}

/* Return the lowest rank that is not connected to rank 0 yet, or 0 if all ranks are connected. */
static uint32_t find_missing(const net *t)
{
    for (uint32_t i = 1; i < t->r.size; i++)
        if (!is_open(t->line[DATA][i].fd) || !is_open(t->line[LIFE][i].fd)) return i;
    return 0;
}

/* Check how long this process has been waiting for rank `rank`, since the time `began`. After
 * SAY_SECONDS, send a notice once. After JOIN_SECONDS, return an error. Both messages name the
 * launcher's environment variable, because it may be left over from another run, so that there are
 * no other ranks. where: text about the address, which is part of both messages. */
static int check_wait(net *t, double began, uint32_t rank, const char *where, sgt_error *err)
{
    sgt_error why;
    const double waited = sgt_now() - began;
    if (waited < SAY_SECONDS) return SGT_OK;
    sgt_fail(&why, SGT_EIO,
             "%s %d s for rank %u of %u%s (to run this process alone, unset %s, which is %u)",
             waited < JOIN_SECONDS ? "waiting up to" : "waited", JOIN_SECONDS, rank, t->r.size,
             where, t->variable, t->r.size);
    if (waited >= JOIN_SECONDS) return sgt_fail(err, why.code, "%s", why.text);
    sgt_say(t->notice, "%s", why.text);
    t->notice = NULL;
    return SGT_OK;
}

static int accept_all(net *t, hello *all, sgt_error *err)
{
    double began = sgt_now();
    int rc = SGT_OK;
    for (uint32_t rank; rc == SGT_OK && (rank = find_missing(t));) {
        struct pollfd line = {.fd = t->listener, .events = POLLIN};
        rc = check_wait(t, began, rank, "", err);
        if (rc < 0 || poll(&line, 1, 50) <= 0) continue;
        int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) rc = greet(t, fd, all, err);
    }
    return rc;
}

/* Send the first message (hello) over a new connection. Return 1 if the other end answers like rank
 * 0, or 0 if not, for example because a different program listens on the port. */
static int is_first(int fd, hello *h)
{
    uint32_t answer = 0;
    set_patience(fd, SAY_SECONDS);
    int answers =
        transfer(fd, h, sizeof *h, SEND) == 0 && transfer(fd, &answer, sizeof answer, RECEIVE) == 0;
    set_patience(fd, 0);
    return answers && answer == MAGIC;
}

/* Open a connection of the kind h->life (DATA or LIFE) to rank 0. If rank 0 does not listen yet,
 * retry for up to JOIN_SECONDS. */
static int reach(net *t, hello *h, sgt_error *err)
{
    double began = sgt_now();
    char where[512];
    int fd, rc;
    while ((fd = open_socket(t, 0)) < 0 || !is_first(fd, h)) {
        snprintf(where, sizeof where, " at %s, port %d: %s", t->host, t->port,
                 fd >= 0 ? "a different program listens there (set a different MASTER_PORT)"
                 : errno == ENXIO ? "unknown host"
                                  : strerror(errno));
        if (fd >= 0) close(fd);
        if ((rc = check_wait(t, began, 0, where, err)) < 0) return rc;
        nap(.05);
    }
    t->line[h->life][0].fd = fd;
    keep_alive(fd);
    return SGT_OK;
}

static void release(net *t)
{
    for (uint32_t i = 0; i < 2 * t->r.size; i++)
        if (t->lines[i].fd >= 0) close(t->lines[i].fd);
    if (t->listener >= 0) close(t->listener);
    free(t);
}

/* Connect this rank to rank 0 or, if it is rank 0, to all other ranks. Set t->r.here to the number
 * of ranks on this machine, and t->r.sharing to the number of those that can run on exactly the
 * same CPU cores as this rank. Both numbers include this rank. They differ if the launcher binds
 * ranks to different cores. */
static int join(net *t, sgt_error *err)
{
    hello *all = calloc(t->r.size, sizeof *all);
    if (!all) return sgt_fail_memory(err, "ranks");
    hello *mine = all + t->r.rank;
    mine->magic = MAGIC;
    mine->rank = t->r.rank;
    mine->size = t->r.size;
    gethostname(mine->machine, sizeof mine->machine - 1);
    sched_getaffinity(0, sizeof mine->cores, &mine->cores);
    int rc = t->r.rank ? SGT_OK : accept_all(t, all, err);
    for (; t->r.rank && mine->life <= LIFE && rc == SGT_OK; mine->life++) rc = reach(t, mine, err);
    if (rc == SGT_OK) rc = broadcast(&t->r, all, t->r.size * sizeof *all, 0, err);
    for (uint32_t i = 0; i < t->r.size; i++) {
        int here = !strcmp(all[i].machine, mine->machine);
        t->r.here += (uint32_t)here;
        t->r.sharing += here && CPU_EQUAL(&all[i].cores, &mine->cores);
    }
    free(all);
    return rc;
}

/* ---- launchers ---- */

/* the library libsgt-mpi.so, or NULL if it is not loaded; never unloaded, because a process can
 * start MPI only once */
static const sgt_mpi_library *mpi;

static int swap(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from,
                void *in, size_t in_bytes, sgt_error *err)
{
    return mpi->swap(to, out, out_bytes, from, in, in_bytes, &r->given_up, err);
}

/* Return the number in the environment variable `name`, or -1 if the variable is not set or empty.
 * If its value is not a valid number, set *rc to SGT_EUSAGE, fill in *err, and return -1. */
static long number(const char *name, int *rc, sgt_error *err)
{
    char *end;
    const char *text = getenv(name);
    if (!text || !*text) return -1;
    const long n = strtol(text, &end, 10);
    if (!*end && n >= 0 && n <= 1000000) return n;
    *rc = sgt_fail(err, SGT_EUSAGE,
                   "%s=%s: must be a whole number from 0 to 1000000, as launchers set it", name,
                   text);
    return -1;
}

typedef struct launcher {
    /* Names of the environment variables in which the launcher passes the number of this rank
     * (`rank`), the number of ranks (`size`), the number of this rank among the ranks on its
     * machine (`local`), and the number of ranks on this machine (`here`). */
    const char *rank, *size, *local, *here;
    int mpi; /* 1 if the launcher uses MPI, otherwise 0 */
} launcher;

/* The supported launchers. torchrun must be the first, because mpirun or srun may have started
 * torchrun. For Slurm, SLURM_STEP_NUM_TASKS is used instead of SLURM_NTASKS, because Slurm sets the
 * latter even in a batch script, which is not a rank. */
static const launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", 0},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", 1},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", 1},
    {0}};

/* Set *found to the launcher that started this process as one of several ranks, or to NULL if there
 * is none. Set the rank and the numbers of ranks in *r from the launcher's variables. If torchrun's
 * variables are set, but the address of rank 0 is missing, return SGT_EUSAGE, because each rank
 * would otherwise run alone, and all ranks would train the same run. */
static int find(const launcher **found, sgt_ranks *r, sgt_error *err)
{
    int rc = SGT_OK;
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"),
               *which = getenv("RANK");
    const char *lacks = !host || !*host ? "MASTER_ADDR" : !port || !*port ? "MASTER_PORT" : NULL;
    *found = NULL;
    for (const launcher *l = launchers; l->rank; l++) {
        if (!l->mpi && lacks) continue;
        const long size = number(l->size, &rc, err);
        if (rc == SGT_OK && size < 2) continue;
        const long rank = number(l->rank, &rc, err), local = number(l->local, &rc, err),
                   here = number(l->here, &rc, err);
        if (rc == SGT_OK && (rank < 0 || rank >= size))
            rc = sgt_fail(err, SGT_EUSAGE, "%s: rank %ld is not below the number of ranks, %ld",
                          l->rank, rank, size);
        r->rank = (uint32_t)rank;
        r->size = (uint32_t)size;
        /* if the launcher does not pass the numbers for this machine, assume that all ranks are on
         * it */
        r->local = (uint32_t)(local < 0 ? rank : local);
        r->here = (uint32_t)(here < 0 ? size : here);
        if (l->mpi) r->swap = swap;
        if (rc == SGT_OK) *found = l;
        return rc;
    }
    const long size = number("WORLD_SIZE", &rc, NULL);
    if (!which || size < 2) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE,
                    "RANK is %s and WORLD_SIZE is %ld, but %s is not set (set it, or unset both to "
                    "run this process alone)",
                    which, size, lacks);
}

uint32_t sgt_ranks_number(void)
{
    const launcher *l;
    sgt_ranks r;
    return find(&l, &r, NULL) == SGT_OK && l ? r.rank : 0;
}

/* ---- rank 0's address ---- */

/* Set the host and port of rank 0 from MASTER_ADDR and MASTER_PORT, and listen on them in rank 0.
 * The port is MASTER_PORT + 1 (or 65534 if MASTER_PORT is 65535), because torchrun listens on
 * MASTER_PORT for its own key-value store. */
static int find_master(net *t, sgt_error *err)
{
    int rc = SGT_OK;
    const long port = number("MASTER_PORT", &rc, err);
    if (rc < 0) return rc;
    if (port < 1 || port > 65535)
        return sgt_fail(err, SGT_EUSAGE, "MASTER_PORT=%ld: must be from 1 to 65535", port);
    snprintf(t->host, sizeof t->host, "%s", getenv("MASTER_ADDR"));
    t->port = (int)(port < 65535 ? port + 1 : port - 1);
    return t->r.rank ? SGT_OK : listen_first(t, err);
}

static int load_mpi(sgt_error *err)
{
    char *path = sgt_own_library(SGT_MPI_LIBRARY), why[256];
    void *library =
        sgt_library_open(path ? path : SGT_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL, why, sizeof why);
    free(path);
    if (!library)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "MPI started this process as one of several ranks, but sgt's MPI library "
                        "cannot be loaded: %s (install libopenmpi-dev and run make)",
                        why);
    mpi = dlsym(library, SGT_MPI_SYMBOL);
    if (mpi && mpi->interface == SGT_MPI_INTERFACE) return SGT_OK;
    mpi = NULL;
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    SGT_MPI_LIBRARY " is from a different build (build both with one make)");
}

/* Start MPI, and use it to broadcast the host and the port on which rank 0 listens. */
static int ask_mpi(net *t, sgt_error *err)
{
    struct {
        char host[sizeof t->host];
        /* rc: SGT_OK, or the negative SGT_E* with which rank 0 failed to listen */
        int rc, port;
    } a = {.rc = SGT_OK};
    sgt_error why = {0};
    int rc = load_mpi(err);
    if (rc < 0) return rc;
    if (t->r.rank == 0) {
        a.rc = listen_first(t, &why);
        a.port = t->port;
        gethostname(a.host, sizeof a.host - 1);
    }
    if ((rc = mpi->open(t->r.rank, t->r.size, &a, sizeof a, err)) < 0) return rc;
    if (a.rc < 0)
        return sgt_fail(err, SGT_EIO, "%s",
                        t->r.rank ? "rank 0 could not open a port to listen on" : why.text);
    gethostname(t->host, sizeof t->host - 1);
    if (strcmp(a.host, t->host) == 0) snprintf(t->host, sizeof t->host, "localhost");
    else memcpy(t->host, a.host, sizeof t->host);
    t->port = a.port;
    return SGT_OK;
}

int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_notice *notice, int apart,
                   sgt_error *err)
{
    static sgt_ranks numbers;
    const launcher *l;
    int rc = find(&l, &numbers, err);
    *out = rc == SGT_OK && l && apart ? &numbers : NULL;
    if (rc < 0 || !l || apart) return rc;
    sgt_end_at_signal(1);
    sgt_ranks r = numbers;
    net *t = calloc(1, sizeof *t + (size_t)2 * r.size * sizeof *t->lines);
    if (!t) return sgt_fail_memory(err, "ranks");
    r.here = 0; /* join adds the number of ranks on this machine */
    r.broadcast = broadcast;
    r.sum = sum;
    r.barrier = barrier;
    r.give_up = give_up;
    t->r = r;
    t->program = program;
    t->variable = l->size;
    t->notice = notice;
    t->listener = -1;
    pthread_mutex_init(&t->saying, NULL);
    for (uint32_t i = 0; i < 2 * r.size; i++)
        t->lines[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    for (int life = DATA; life <= LIFE; life++) t->line[life] = t->lines + (size_t)life * r.size;
    rc = l->mpi ? ask_mpi(t, err) : find_master(t, err);
    if (rc == SGT_OK) rc = join(t, err);
    if (rc == SGT_OK &&
        pthread_create(&t->watcher, NULL, r.rank ? watch_first : watch_others, t) != 0)
        rc = sgt_fail(err, SGT_ENOMEM, "ranks: cannot start a thread");
    if (rc == SGT_OK) *out = &t->r;
    else release(t);
    sgt_end_at_signal(0);
    return rc;
}

int sgt_ranks_close(sgt_ranks *r, const sgt_program *p, int rc, sgt_error *err)
{
    if (!sgt_ranks_connected(r)) r = NULL;
    net *t = (net *)r;
    if (rc >= 0) rc = sgt_flush_results(err);
    if (r && rc >= 0) rc = barrier(r, err);
    if (r && rc < 0) give_up(r, err);
    int said = r && rc < 0 && rc != SGT_ESTOPPED;
    int code = said ? sgt_exit_code(rc) : sgt_end_program(p, rc, err);
    if (r && code) end_others(t, code);
    if (r && !code) {
        /* Stop the watcher thread of rank 0 before the other ranks close their connections.
         * Otherwise, it would report that these ranks have died. */
        set(&t->ended);
        pthread_join(t->watcher, NULL);
        end_others(t, 0);
        release(t);
    }
    /* Do not shut MPI down after a failure, because the shutdown would wait for all ranks, possibly
     * forever. The launcher cleans up in that case. */
    if (!code && mpi) mpi->close();
    return code;
}
