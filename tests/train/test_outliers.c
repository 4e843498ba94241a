/* test_outliers.c: which steps --skip-spikes skips. */
#include <criterion/criterion.h>

#include "kernels/outliers.h"

/* 128 numbers that alternate between 1 and 3 have mean 2 and deviation 1. */
Test(outliers, z_is_in_standard_deviations_above_the_mean)
{
    double last[SGT_OUTLIER_STEPS], same[SGT_OUTLIER_STEPS];
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++) {
        last[i] = i % 2 ? 3 : 1;
        same[i] = 2;
    }
    cr_expect_eq(sgt_outlier_z(last, 2), 0);
    cr_expect_eq(sgt_outlier_z(last, 5.5), 3.5);
    cr_expect_eq(sgt_outlier_z(last, -1), -3);
    cr_expect_eq(sgt_outlier_z(same, 9), 0, "no deviation to count in");
}

Test(outliers, only_what_is_kept_is_looked_back_at)
{
    sgt_outliers o = {0};
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++)
        cr_expect_eq(sgt_outliers_take(&o, 3,
                                       i == 7  ? 100
                                       : i % 2 ? 3
                                               : 1,
                                       1),
                     0, "step %d comes too early", i);
    for (int i = 0; i < 8; i++) cr_expect_eq(sgt_outliers_take(&o, 3, i % 2 ? 3 : 1, 1), 0);
    /* the loss of 100 has left the window, which now has losses of 1 and 3, and norms of 1 */
    for (int i = 0; i < 20; i++)
        cr_expect_eq(sgt_outliers_take(&o, 3, 5.001, 1), 1, "the %dth of a row", i);
    cr_expect(o.spikes == 20 && o.taken == SGT_OUTLIER_STEPS + 8);
    cr_expect_eq(sgt_outliers_take(&o, 3, 4.999, 1), 0, "below the third deviation");
    cr_expect_eq(sgt_outliers_take(&o, 3, -50, 1), 0, "far below is no spike");
}

Test(outliers, either_number_is_enough)
{
    sgt_outliers o = {0};
    for (int i = 0; i < SGT_OUTLIER_STEPS; i++)
        sgt_outliers_take(&o, 4, i % 2 ? 3 : 1, i % 2 ? 0.5 : 1.5);
    cr_expect_eq(sgt_outliers_take(&o, 4, 2, 3.1), 1);
    cr_expect_eq(sgt_outliers_take(&o, 4, 6.1, 1), 1);
    cr_expect_eq(sgt_outliers_take(&o, 4, 5.9, 2.9), 0);
}
