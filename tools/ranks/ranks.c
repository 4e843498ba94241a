/* ranks.c: finds the launcher that started this process, from its environment variables, and connects
 * every rank to rank 0 with two TCP connections. Over the first (DATA), the main thread sends
 * broadcasts, sums and barriers. A thread watches the second (LIFE), which only transfers notes: that
 * a rank has given up, or that all ranks must end.
 *
 * If the launcher is one of MPI, loads libsgt-mpi.so: it tells every rank the address where rank 0
 * listens, and carries the gradients of CPU ranks (`swap`). NCCL or MPI cannot replace TCP. Ranks
 * that torchrun started have no MPI, and NCCL cannot connect CPU ranks. Neither reports in one line
 * which rank died. */
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
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "loader/base/library.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"
#include "tools/ranks/libsgt-mpi/mpi.h"

#define MAGIC 0x52746773u /* "sgtR" */
#define JOIN_SECONDS 120
/* seconds that rank 0 waits before it prints another rank's failure, because it may fail for the
 * same reason and print that itself */
#define GRACE_SECONDS 1
/* seconds that it waits after a rank's death, because a launcher may have killed all ranks: fewer,
 * because mpirun kills the others a second after the first */
#define DEATH_SECONDS .25
#define END_SECONDS 10 /* seconds that a rank which has failed has for freeing its resources */

/* Where the ranks meet, and which of them this process is. */
typedef struct sgt_rendezvous {
    /* this process's number, the number of ranks, and its number on this machine, as in
     * sgt_ranks */
    uint32_t rank, size, local;
    const char *host; /* host of rank 0 */
    int port;         /* port on which rank 0 listens */
    int listener;     /* rank 0's listening socket (listen_first); -1 on the other ranks */
    uint64_t token;   /* secret of this run, sent first over every connection; 0: none */
} sgt_rendezvous;

typedef struct hello {
    uint32_t magic, rank, size, life; /* life: 1: a LIFE connection; 0: a DATA connection */
    uint64_t token;
} hello;

/* A message over a LIFE connection. */
typedef struct note {
    int32_t code; /* from rank 0: end with this exit code; to rank 0: the sender's error */
    char text[1024];
} note;

typedef struct net {
    sgt_ranks r; /* first, so that a sgt_ranks * can be cast to a net * */
    const char *program;
    /* (size) on rank 0, one pair of connections per other rank; other ranks use only the first */
    int *data;
    struct pollfd *life;
    int listener;
    pthread_t watcher;
    int ending;      /* 1: the program is leaving; atomic, like r.given_up and told */
    int told;        /* rank 0 only: 1: one of its threads has begun to print why all ranks end */
    double deadline; /* time at which a rank that has given up must end */
    sgt_error why;   /* error with which this rank gave up; written before given_up is set */
} net;

static void set(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
static int is_set(const int *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }

/* ---- bytes ---- */

static int send_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int receive_all(int fd, void *bytes, size_t n)
{
    char *p = bytes;
    while (n) {
        ssize_t k = recv(fd, p, n, 0);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* Set options of a socket so that the system notices within 25 s if a machine has died. */
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
    return sgt_fail(err, SGT_EIO,
                    "rank %u of %u has died, and with it the run (what is saved stays)", rank,
                    t->r.size);
}

/* Send n to a rank, then n bytes. If ranks are out of step, the receiver notices by the number. */
static int send_to(net *t, uint32_t rank, const void *bytes, size_t n, sgt_error *err)
{
    uint64_t size = n;
    int fd = t->data[rank];
    return send_all(fd, &size, sizeof size) < 0 || send_all(fd, bytes, n) < 0 ? gone(t, rank, err)
                                                                              : SGT_OK;
}

static int receive_from(net *t, uint32_t rank, void *bytes, size_t n, sgt_error *err)
{
    uint64_t size;
    int fd = t->data[rank];
    if (receive_all(fd, &size, sizeof size) < 0) return gone(t, rank, err);
    if (size != n)
        return sgt_fail(
            err, SGT_EIO,
            "ranks are out of step: rank %u has sent %llu bytes where %zu were its turn", rank,
            (unsigned long long)size, n);
    return receive_all(fd, bytes, n) < 0 ? gone(t, rank, err) : SGT_OK;
}

static int send_to_others(net *t, const void *bytes, size_t n, uint32_t but, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 1; i < t->r.size && rc == SGT_OK; i++)
        if (i != but) rc = send_to(t, i, bytes, n, err);
    return rc;
}

static int broadcast(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err)
{
    net *t = (net *)r;
    if (r->rank)
        return r->rank == root ? send_to(t, 0, bytes, n, err) : receive_from(t, 0, bytes, n, err);
    int rc = root ? receive_from(t, root, bytes, n, err) : SGT_OK;
    return rc == SGT_OK ? send_to_others(t, bytes, n, root, err) : rc;
}

static int sum(sgt_ranks *r, double *x, size_t n, sgt_error *err)
{
    enum { PIECE = 64 };
    net *t = (net *)r;
    int rc = SGT_OK;
    double part[PIECE];
    for (; n > PIECE && rc == SGT_OK; x += PIECE, n -= PIECE) rc = sum(r, x, PIECE, err);
    if (rc < 0) return rc;
    if (r->rank) {
        rc = send_to(t, 0, x, n * sizeof *x, err);
        return rc == SGT_OK ? receive_from(t, 0, x, n * sizeof *x, err) : rc;
    }
    for (uint32_t i = 1; i < r->size && rc == SGT_OK; i++) {
        if ((rc = receive_from(t, i, part, n * sizeof *x, err)) < 0) return rc;
        for (size_t j = 0; j < n; j++) x[j] += part[j];
    }
    return rc == SGT_OK ? send_to_others(t, x, n * sizeof *x, 0, err) : rc;
}

static int barrier(sgt_ranks *r, sgt_error *err) { return sum(r, NULL, 0, err); }

/* ---- watching ---- */

static void print_line(const net *t, const char *text)
{
    sgt_put_line(stderr, "%s%s: %s", sgt_can_redraw() ? "\r\033[K" : "", t->program, text);
}

static int exit_code(int error)
{
    return error == SGT_ESTOPPED ? SGT_EXIT_INTERRUPTED
           : error == SGT_EUSAGE ? SGT_EXIT_USAGE
                                 : SGT_EXIT_FAILED;
}

static void end_others(const net *t, int code)
{
    note n = {.code = code};
    for (uint32_t i = 1; t->r.rank == 0 && i < t->r.size; i++)
        send_all(t->life[i].fd, &n, sizeof n);
}

static _Noreturn void end_all(const net *t, const sgt_error *why)
{
    print_line(t, why->text);
    end_others(t, exit_code(why->code));
    _exit(exit_code(why->code));
}

/* Return whether this thread is the first that is about to print why all ranks end. Another thread
 * must not print then. */
static int may_print(net *t) { return !__atomic_exchange_n(&t->told, 1, __ATOMIC_ACQ_REL); }

/* Tell that this rank gives up. If rank 0's watcher is already ending all ranks because of another
 * rank, wait for that end instead: this failure is most likely that rank's closed connection. */
static void give_up(sgt_ranks *r, const sgt_error *why)
{
    net *t = (net *)r;
    note n = {.code = why->code};
    if (is_set(&r->given_up)) return;
    while (!r->rank && !may_print(t)) pause();
    t->why = *why;
    t->deadline = sgt_now() + END_SECONDS;
    set(&r->given_up);
    snprintf(n.text, sizeof n.text, "%s", why->text);
    if (r->rank) send_all(t->life[0].fd, &n, sizeof n);
}

/* Read from a rank's LIFE connection what has happened to it, and set *bad. For an interrupt, the
 * message names no rank, because the user meant all of them. Return for how many seconds rank 0
 * should wait before it prints this. */
static double read_failure(const net *t, uint32_t rank, sgt_error *bad)
{
    note n;
    if (receive_all(t->life[rank].fd, &n, sizeof n) < 0) {
        gone(t, rank, bad);
        return DEATH_SECONDS;
    }
    n.text[sizeof n.text - 1] = 0;
    if (n.code == SGT_ESTOPPED) sgt_fail(bad, n.code, "%s", n.text);
    else sgt_fail(bad, n.code, "rank %u: %s", rank, n.text);
    return GRACE_SECONDS;
}

/* Watch the other ranks, in rank 0's thread. Print the first failure of one of them and end all
 * ranks, unless rank 0 itself fails first. */
static void watch_peers(net *t)
{
    sgt_error bad = {0};
    double until = 0;
    while (!is_set(&t->ending)) {
        if (is_set(&t->r.given_up)) {
            if (sgt_now() > t->deadline) end_all(t, &t->why);
        } else if (bad.code && sgt_now() > until && may_print(t)) {
            end_all(t, &bad);
        }
        /* after the first failure, only wait */
        int news = poll(t->life, bad.code ? 0 : t->r.size, 50);
        for (uint32_t i = 1; news > 0 && !is_set(&t->ending) && i < t->r.size; i++)
            if (t->life[i].revents && !bad.code) until = sgt_now() + read_failure(t, i, &bad);
    }
}

/* Watch rank 0, in the thread of another rank: end when rank 0 tells so, or when it has died. */
static void watch_first(net *t)
{
    note n;
    while (!is_set(&t->ending)) {
        if (poll(t->life, 1, 50) <= 0) continue;
        int heard = receive_all(t->life[0].fd, &n, sizeof n) == 0;
        if (is_set(&t->ending)) return;
        if (heard) _exit(n.code);
        sgt_error bad;
        gone(t, 0, &bad);
        if (t->r.rank == 1) print_line(t, bad.text);
        _exit(SGT_EXIT_FAILED);
    }
}

static void *watch(void *ctx)
{
    net *t = ctx;
    if (t->r.rank) watch_first(t);
    else watch_peers(t);
    return NULL;
}

/* ---- joining ---- */

/* Return a socket that listens at host and port, or that is connected to them. On failure, return
 * -1 and set *why to the resolver's message, or to NULL if the reason is in errno. */
static int open_socket(const char *host, int port, int listens, const char **why)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = listens ? AI_PASSIVE : 0};
    struct addrinfo *found;
    char service[16];
    int fd = -1, on = 1, failed = 0;
    snprintf(service, sizeof service, "%d", port);
    int code = getaddrinfo(host, service, &hints, &found);
    *why = code ? gai_strerror(code) : NULL;
    for (struct addrinfo *a = code ? NULL : found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && listens) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd >= 0 && listens && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 128) == 0)
            break;
        if (fd >= 0 && !listens && connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
        failed = errno;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    if (!code) freeaddrinfo(found);
    errno = failed;
    return fd;
}

/* Open rank 0's socket, p->listener, which listens at p->host and p->port. If host is NULL, listen
 * at any address; if port is 0, the system chooses one and p->port is set. */
static int listen_first(sgt_rendezvous *p, sgt_error *err)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    const char *why, *where = p->host ? p->host : "any address";
    if ((p->listener = open_socket(p->host, p->port, 1, &why)) < 0)
        return why ? sgt_fail(err, SGT_EIO, "%s: %s", where, why)
                   : sgt_fail_errno(err, "rank 0 listens at %s, port %d", where, p->port);
    if (getsockname(p->listener, (struct sockaddr *)&a, &n) < 0) {
        close(p->listener);
        return sgt_fail_errno(err, "rank 0's socket");
    }
    p->port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                            : ((struct sockaddr_in *)&a)->sin_port);
    return SGT_OK;
}

/* Return SGT_EIO, without a message, if the time `until` has passed; SGT_ESTOPPED after an
 * interrupt; otherwise SGT_OK. */
static int too_late(double until, const sgt_stop *stop, sgt_error *err)
{
    if (sgt_stopped(stop))
        return sgt_fail(err, SGT_ESTOPPED, "interrupted before all ranks had come");
    return sgt_now() > until ? SGT_EIO : SGT_OK;
}

/* Return where the socket of a connection with a rank is kept. */
static int *connection(net *t, uint32_t rank, uint32_t life)
{
    return life ? &t->life[rank].fd : &t->data[rank];
}

/* Keep a new connection if it comes from a rank that knows the token of this run; otherwise close
 * it without an answer. */
static int greet(net *t, int fd, uint64_t token, sgt_error *err)
{
    hello h;
    struct timeval patience = {.tv_sec = 5}, none = {0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int good =
        receive_all(fd, &h, sizeof h) == 0 && h.magic == MAGIC && h.token == token && h.life < 2;
    if (!good) {
        close(fd);
        return SGT_OK;
    }
    if (h.size != t->r.size || h.rank == 0 || h.rank >= t->r.size ||
        *connection(t, h.rank, h.life) >= 0) {
        close(fd);
        return sgt_fail(
            err, SGT_EUSAGE,
            "a rank %u of %u came where %u ranks are, each once (another run's address?)", h.rank,
            h.size, t->r.size);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    keep_alive(fd);
    *connection(t, h.rank, h.life) = fd;
    return SGT_OK;
}

/* Return the number of ranks that have not joined; set *first to the lowest of them. */
static uint32_t missing(const net *t, uint32_t *first)
{
    uint32_t n = 0;
    for (uint32_t i = t->r.size; i-- > 1;)
        if (t->data[i] < 0 || t->life[i].fd < 0) n++, *first = i;
    return n;
}

static int accept_all(net *t, const sgt_rendezvous *p, const sgt_stop *stop, sgt_error *err)
{
    double until = sgt_now() + JOIN_SECONDS;
    uint32_t n, first;
    int rc = SGT_OK;
    while (rc == SGT_OK && (n = missing(t, &first)) > 0) {
        struct pollfd line = {.fd = t->listener, .events = POLLIN};
        if ((rc = too_late(until, stop, err)) == SGT_EIO)
            sgt_fail(err, SGT_EIO, "%u of %u ranks have not come within %d s, rank %u among them",
                     n, t->r.size, JOIN_SECONDS, first);
        if (rc < 0 || poll(&line, 1, 50) <= 0) continue;
        int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) rc = greet(t, fd, p->token, err);
    }
    return rc;
}

/* Connect to rank 0. Retry until it listens, for at most JOIN_SECONDS. */
static int reach(net *t, const sgt_rendezvous *p, uint32_t life, const sgt_stop *stop,
                 sgt_error *err)
{
    double until = sgt_now() + JOIN_SECONDS;
    hello h = {.magic = MAGIC, .rank = p->rank, .size = p->size, .life = life, .token = p->token};
    const char *unknown;
    int rc, fd;
    while ((fd = open_socket(p->host, p->port, 0, &unknown)) < 0) {
        int why = unknown ? EHOSTUNREACH : errno;
        if ((rc = too_late(until, stop, err)) == SGT_EIO) {
            errno = why;
            return sgt_fail_errno(err, "rank 0 at %s, port %d, tried for %d s", p->host, p->port,
                                  JOIN_SECONDS);
        }
        if (rc < 0) return rc;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    *connection(t, 0, life) = fd;
    keep_alive(fd);
    return send_all(fd, &h, sizeof h) < 0
               ? sgt_fail_errno(err, "rank 0 at %s, port %d", p->host, p->port)
               : SGT_OK;
}

static void release(net *t)
{
    for (uint32_t i = 0; t->data && t->life && i < t->r.size; i++) {
        if (t->data[i] >= 0) close(t->data[i]);
        if (t->life[i].fd >= 0) close(t->life[i].fd);
    }
    if (t->listener >= 0) close(t->listener);
    free(t->data);
    free(t->life);
    free(t);
}

/* Connect all ranks, and take ownership of p->listener. */
static int connect_all(sgt_ranks **out, sgt_rendezvous *p, const char *program,
                       const sgt_stop *stop, sgt_error *err)
{
    net *t = calloc(1, sizeof *t);
    if (!t) return sgt_fail_memory(err, "ranks");
    t->r = (sgt_ranks){.rank = p->rank,
                       .size = p->size,
                       .local = p->local,
                       .broadcast = broadcast,
                       .sum = sum,
                       .barrier = barrier,
                       .give_up = give_up};
    t->program = program;
    t->listener = p->listener;
    t->data = malloc(p->size * sizeof *t->data);
    t->life = malloc(p->size * sizeof *t->life);
    int rc = t->data && t->life ? SGT_OK : sgt_fail_memory(err, "ranks");
    for (uint32_t i = 0; rc == SGT_OK && i < p->size; i++) {
        t->data[i] = -1;
        t->life[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    if (rc == SGT_OK && !p->rank) rc = accept_all(t, p, stop, err);
    for (uint32_t life = 0; rc == SGT_OK && p->rank && life < 2; life++)
        rc = reach(t, p, life, stop, err);
    if (rc == SGT_OK) rc = barrier(&t->r, err);
    if (rc == SGT_OK && pthread_create(&t->watcher, NULL, watch, t) != 0)
        rc = sgt_fail(err, SGT_ENOMEM, "ranks: cannot start a thread");
    if (rc < 0) {
        release(t);
        return rc;
    }
    *out = &t->r;
    return SGT_OK;
}

/* Wait, after this rank has failed, until rank 0 has printed the failure and ended this rank. */
static void wait_for_end(const net *t)
{
    double until = sgt_now() + END_SECONDS + 2 * GRACE_SECONDS;
    while (sgt_now() < until && !is_set(&t->ending))
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static void disconnect(sgt_ranks *r, int code)
{
    net *t = (net *)r;
    if (code && r->rank) wait_for_end(t);
    /* until all ranks have come here, a closed connection is a death, of which the watcher tells */
    if (!code && barrier(r, NULL) < 0) wait_for_end(t);
    set(&t->ending);
    if (code) end_others(t, code);
    /* a barrier, because no connection may close before every rank knows that this is the end */
    else barrier(r, NULL);
    pthread_join(t->watcher, NULL);
    release(t);
}

/* ---- launchers ---- */

/* Set *n to the number in a launcher's variable, or to -1 if the variable is not set. */
static int number(const char *name, long *n, sgt_error *err)
{
    char *end;
    const char *text = getenv(name);
    *n = -1;
    if (!text || !*text) return SGT_OK;
    *n = strtol(text, &end, 10);
    if (*end || *n < 0 || *n > 1000000)
        return sgt_fail(err, SGT_EUSAGE, "%s=%s: not a number of a launcher's", name, text);
    return SGT_OK;
}

typedef struct launcher {
    const char *rank, *size, *local; /* names of the launcher's variables */
    int mpi;
} launcher;

/* The launchers. torchrun comes first, because mpirun or srun may have started it. Slurm sets
 * SLURM_NTASKS and SLURM_PROCID even in a batch script, which is no rank; only a job step has
 * SLURM_STEP_NUM_TASKS. */
static const launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", 0},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", 1},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", 1}};

/* Find the first launcher whose variables say that it started several processes, and fill in *p
 * from them. Set *l to NULL if there is none. */
static int find(const launcher **l, sgt_rendezvous *p, sgt_error *err)
{
    long rank, size, local;
    int rc = SGT_OK;
    *l = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && rc == SGT_OK; i++) {
        if (!launchers[i].mpi && (!getenv("MASTER_ADDR") || !getenv("MASTER_PORT"))) continue;
        if ((rc = number(launchers[i].size, &size, err)) < 0 || size < 2) continue;
        if ((rc = number(launchers[i].rank, &rank, err)) < 0 ||
            (rc = number(launchers[i].local, &local, err)) < 0)
            break;
        if (rank < 0 || rank >= size)
            return sgt_fail(err, SGT_EUSAGE, "%s: rank %ld of %ld", launchers[i].rank, rank, size);
        /* a launcher without local numbers: all ranks are on one machine */
        if (local < 0) local = rank;
        *p = (sgt_rendezvous){.rank = (uint32_t)rank,
                              .size = (uint32_t)size,
                              .local = (uint32_t)local,
                              .listener = -1};
        *l = launchers + i;
        return SGT_OK;
    }
    return rc;
}

uint32_t sgt_ranks_number(void)
{
    const launcher *l;
    sgt_rendezvous p;
    return find(&l, &p, NULL) == SGT_OK && l ? p.rank : 0;
}

/* ---- rank 0's address ---- */

/* Set the host and port of rank 0 from MASTER_ADDR and MASTER_PORT. torchrun's own store is at
 * MASTER_PORT, so rank 0 listens on the next port. */
static int find_master(sgt_rendezvous *p, sgt_error *err)
{
    long port;
    int rc = number("MASTER_PORT", &port, err);
    if (rc < 0) return rc;
    if (port < 1 || port > 65535)
        return sgt_fail(err, SGT_EUSAGE, "MASTER_PORT=%ld: no port (1 to 65535)", port);
    p->host = getenv("MASTER_ADDR");
    p->port = (int)(port < 65535 ? port + 1 : port - 1);
    return p->rank ? SGT_OK : listen_first(p, err);
}

static const sgt_mpi_library *mpi; /* the loaded library; a process can start MPI only once */

static int load_mpi(sgt_error *err)
{
    char *path = sgt_own_library(SGT_MPI_LIBRARY), why[256];
    void *library =
        sgt_library_open(path ? path : SGT_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL, why, sizeof why);
    free(path);
    if (!library)
        return sgt_fail(
            err, SGT_EUNSUPPORTED,
            "started as one of several ranks, by MPI: %s (make builds it where libopenmpi-dev is)",
            why);
    mpi = dlsym(library, SGT_MPI_SYMBOL);
    if (mpi && mpi->interface == SGT_MPI_INTERFACE) return SGT_OK;
    mpi = NULL;
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    SGT_MPI_LIBRARY " is of another build (make builds both)");
}

static int swap(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from,
                void *in, size_t in_bytes, sgt_error *err)
{
    return mpi->swap(to, out, out_bytes, from, in, in_bytes, &r->given_up, err);
}

#define HOST 256 /* bytes of a host's name */

/* Start MPI, and learn from rank 0 at which host and port it listens, and the run's token. The
 * name is kept in `host`. */
static int ask_mpi(sgt_rendezvous *p, char host[HOST], sgt_error *err)
{
    struct {
        char host[HOST];
        int rc, port; /* rc: why rank 0 cannot listen, or 0 */
        uint64_t token;
    } a = {.rc = SGT_OK};
    sgt_error why = {0};
    int rc = load_mpi(err);
    if (rc < 0 || (rc = mpi->open(p->rank, p->size, err)) < 0) return rc;
    if (p->rank == 0) {
        gethostname(a.host, sizeof a.host - 1);
        a.rc = getentropy(&a.token, sizeof a.token) < 0
                   ? sgt_fail_errno(&why, "a random number for the ranks' connections")
                   : listen_first(p, &why);
        a.port = p->port;
    }
    if ((rc = mpi->broadcast(&a, sizeof a, 0, err)) < 0) return rc;
    if (a.rc < 0)
        return sgt_fail(err, SGT_EIO, "%s", p->rank ? "rank 0 has no port to listen on" : why.text);
    gethostname(host, HOST - 1);
    p->host = strcmp(a.host, host) == 0 ? "localhost" : memcpy(host, a.host, HOST);
    p->port = a.port;
    p->token = a.token;
    return SGT_OK;
}

/* ---- ranks that share this rank's machine ---- */

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u; /* FNV-1a */
    return h;
}

/* Set *n to the number of ranks that call this with the same hash. */
static int count_same(sgt_ranks *r, uint64_t hash, uint32_t *n, sgt_error *err)
{
    double *all = calloc(r->size, sizeof *all);
    if (!all) return sgt_fail_memory(err, "ranks");
    double mine = (double)(hash >> 12); /* only as many bits as a double represents exactly */
    all[r->rank] = mine;
    int rc = r->sum(r, all, r->size, err);
    for (uint32_t i = 0; i < r->size; i++) *n += all[i] == mine;
    free(all);
    return rc;
}

/* Set r->here to the number of ranks on this machine, and r->sharing to that of the ranks that may
 * run on the same cores: some launchers bind each rank to cores of its own. */
static int count_neighbours(sgt_ranks *r, sgt_error *err)
{
    char host[256] = "";
    cpu_set_t cores;
    gethostname(host, sizeof host - 1);
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    uint64_t machine = mix(14695981039346656037u, host, sizeof host);
    int rc = count_same(r, machine, &r->here, err);
    return rc < 0 ? rc : count_same(r, mix(machine, &cores, sizeof cores), &r->sharing, err);
}

int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_stop *stop, sgt_error *err)
{
    const launcher *l;
    sgt_rendezvous p;
    char host[HOST] = "";
    *out = NULL;
    int rc = find(&l, &p, err);
    if (rc < 0 || !l) return rc;
    if ((rc = l->mpi ? ask_mpi(&p, host, err) : find_master(&p, err)) < 0 ||
        (rc = connect_all(out, &p, program, stop, err)) < 0)
        return rc;
    if (l->mpi) (*out)->swap = swap;
    if ((rc = count_neighbours(*out, err)) == SGT_OK) return SGT_OK;
    (*out)->give_up(*out, err);
    disconnect(*out, SGT_EXIT_FAILED);
    *out = NULL;
    return rc;
}

void sgt_ranks_close(sgt_ranks *r, int code)
{
    if (r) disconnect(r, code);
    if (!code && mpi) mpi->close(); /* after a failure, the launcher cleans up */
}
