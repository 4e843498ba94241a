/* test_team.c: threads that share tasks (train/generate/team.h). Every task of a round is done
 * exactly once. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "train/generate/team.h"

enum { TEAM = 4, ROUNDS = 3000, TASKS = 7 };

static struct {
    sgt_team team;
    int done[ROUNDS][TASKS];
} shared = {.team = SGT_TEAM};

static void *work(void *wrong)
{
    for (int r = 0; r < ROUNDS; r++) {
        for (size_t t; (t = sgt_team_next(&shared.team)) < TASKS;) shared.done[r][t]++;
        sgt_team_barrier(&shared.team, TEAM);
        /* these reads need not be atomic, because the barrier orders them */
        for (int t = 0; t < TASKS; t++) *(int *)wrong += shared.done[r][t] != 1;
    }
    return NULL;
}

Test(team, does_each_task_once_and_sees_all_of_a_round)
{
    pthread_t threads[TEAM];
    int wrong[TEAM] = {0};
    for (int i = 0; i < TEAM; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &wrong[i]), 0);
    for (int i = 0; i < TEAM; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < TEAM; i++) cr_expect_eq(wrong[i], 0);
}
