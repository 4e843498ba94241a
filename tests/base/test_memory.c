/* test_memory.c: free memory, read from folders that imitate the kernel's files: both versions of
 * control groups, nested, mixed, and as seen inside a container. Also the memory of an arena. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "tests/expect.h"
#include "tests/scratch.h"

static char folder[SCRATCH_SIZE];

static void enter(void) { cr_assert(scratch_folder(folder, "/tmp", "memory"), "%s", folder); }

static void leave(void) { must(sgt_remove_tree(folder, why)); }

TestSuite(memory, .init = enter, .fini = leave);

static void put(const char *path, const char *text)
{
    char full[256], above[256];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    strcpy(above, full);
    *strrchr(above, '/') = 0;
    must(sgt_make_folders(above, why));
    must(sgt_file_put(full, text, strlen(text), why));
}

static void expect(uint64_t available, const char *limit)
{
    sgt_memory m;
    sgt_memory_look(&m, folder);
    cr_assert_eq(m.available, available, "%lu, expected %lu", m.available, available);
    cr_assert_str_eq(m.limit, limit);
    cr_assert(m.total >= available);
}

static const char machine[] = "this machine", group[] = "this process's control group (container)";

static void put_machine(void)
{
    put("proc/meminfo",
        "MemTotal:       10000 kB\nMemFree:         4000 kB\nMemAvailable:    8000 kB\n");
}

Test(memory, nothing_to_read_bounds_nothing)
{
    expect(UINT64_MAX, machine);
    put("proc/self/cgroup", "no colon\n1:\n\n0::\n7:memory:/x\n");
    expect(UINT64_MAX, machine);
}

Test(memory, machine_without_groups)
{
    put_machine();
    expect(8000 << 10, machine);
    put("proc/self/cgroup", "0::/\n");
    expect(8000 << 10, machine);
}

/* Control groups of version 2: the bound is the smallest of memory.max and memory.high, of the
 * group and of the groups above it. The page cache counts as free. */
Test(memory, version_2)
{
    put_machine();
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "5000000\n");
    put("sys/fs/cgroup/a/b/memory.high", "max\n");
    put("sys/fs/cgroup/a/b/memory.current", "1500000\n");
    put("sys/fs/cgroup/a/b/memory.stat",
        "anon 900000\nfile 600000\ninactive_file 400000\nactive_file 100000\n");
    expect(5000000 - (1500000 - 500000), group);
    put("sys/fs/cgroup/a/b/memory.high", "3000000\n");
    expect(3000000 - (1500000 - 500000), group);
    put("sys/fs/cgroup/a/memory.max", "4000000\n");
    put("sys/fs/cgroup/a/memory.current", "3900000\n");
    expect(4000000 - 3900000, group);
    sgt_memory m;
    sgt_memory_look(&m, folder);
    cr_assert_eq(m.total, 4000000);
    /* usage may be above the limit */
    put("sys/fs/cgroup/a/memory.current", "4100000\n");
    expect(0, group);
    put("sys/fs/cgroup/a/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.high", "max\n");
    expect(8000 << 10, machine);
}

Test(memory, version_1)
{
    put_machine();
    put("proc/self/cgroup", "5:cpu,cpuacct:/z\n4:memory:/job/1\n1:name=systemd:/y\n0::/\n");
    /* the value that the kernel shows for "no limit" */
    put("sys/fs/cgroup/memory/job/1/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/job/1/memory.usage_in_bytes", "300000\n");
    expect(8000 << 10, machine);
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
    put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "700000\n");
    put("sys/fs/cgroup/memory/job/memory.stat",
        "cache 1\ninactive_file 1\ntotal_inactive_file 150000\n"
        "total_active_file 50000\n");
    expect(2000000 - (700000 - 200000), group);
}

/* In a container, /proc/self/cgroup has the path on the host, but the container's own group is the
 * mount point. */
Test(memory, container_that_sees_its_own_group_as_the_mount)
{
    put_machine();
    put("proc/self/cgroup", "3:memory:/docker/0123456789abcdef\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "48576\n");
    expect(1000000, group);
    put("proc/self/cgroup", "0::/../../docker/0123456789abcdef\n");
    put("sys/fs/cgroup/memory.max", "500000\n");
    put("sys/fs/cgroup/memory.current", "100000\n");
    expect(400000, group);
}

/* A quota of CPU time: the smallest quota of the group and of the groups above it, in whole
 * CPUs. */
Test(memory, quota_of_cpus_in_version_2)
{
    cr_assert_eq(sgt_group_cpus(folder), UINT64_MAX, "nothing to read");
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    cr_assert_eq(sgt_group_cpus(folder), UINT64_MAX);
    put("sys/fs/cgroup/a/cpu.max", "800000 100000\n");
    cr_assert_eq(sgt_group_cpus(folder), 8);
    put("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    cr_assert_eq(sgt_group_cpus(folder), 2);
    put("sys/fs/cgroup/cpu.max", "20000 100000\n");
    cr_assert_eq(sgt_group_cpus(folder), 1);
    put("sys/fs/cgroup/cpu.max", "20000 0\n"); /* not the kernel's */
    cr_assert_eq(sgt_group_cpus(folder), 2);
}

Test(memory, quota_of_cpus_in_version_1)
{
    put("proc/self/cgroup", "6:cpuset:/c\n5:cpu,cpuacct:/job/1\n4:memory:/m\n0::/\n");
    put("sys/fs/cgroup/cpu/job/1/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/job/1/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(sgt_group_cpus(folder), UINT64_MAX);
    put("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
    put("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(sgt_group_cpus(folder), 3);
    /* groups of other controllers (cpuset and memory above), which must not count */
    put("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu/m/cpu.cfs_quota_us", "100000\n");
    put("sys/fs/cgroup/cpu/m/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(sgt_group_cpus(folder), 3);
}

Test(arena, counts_then_hands_out_aligned_zeros)
{
    sgt_error err;
    sgt_arena a = {0};
    cr_assert_null(sgt_arena_take(&a, 3, 4));
    cr_assert_null(sgt_arena_take(&a, 1, 65));
    cr_assert_eq(a.used, 64 + 128);
    must(sgt_arena_map(&a, a.used, 1, why));
    char *p = sgt_arena_take(&a, 3, 4), *q = sgt_arena_take(&a, 1, 65);
    cr_assert_eq((uintptr_t)p % (2 << 20), 0);
    cr_assert_eq(q - p, 64);
    for (int i = 0; i < 65; i++) cr_assert_eq(q[i], 0);
    sgt_arena_unmap(&a);
    cr_assert_null(a.base);
    cr_assert_eq(sgt_arena_map(&a, SIZE_MAX - 5, 0, &err), SGT_ENOMEM);
}

/* On the machine that runs the test, free memory is above 1 MiB and at most the physical memory. */
Test(memory, this_machine)
{
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    cr_assert(m.available > 1 << 20 &&
              m.available <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}
