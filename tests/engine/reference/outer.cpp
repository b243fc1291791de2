// sums[s, c] = factor * the sum over rows n of u[n, s] v[n, c], in fp32 whatever the inputs' format.
#include "kernels.h"
#include "matrix.h"

template <typename T> bool check_outer(const Library &library) {
    Check<T> check("outer");
    Random random(7);
    const float factor = 0.3f;
    struct Case {
        long rows, width, columns;
    };
    for (auto [rows, width, columns] : {Case{31, 20, 64}, {1, 3, 5}, {70, 7, 391}, {12, 1, 16}}) {
        Matrix<T> u(rows, width + 3, random), v(rows, columns + 5, random);
        std::vector<Estimate> expected;
        for (long s = 0; s < width; s++)
            for (long c = 0; c < columns; c++) {
                Sum sum;
                for (long n = 0; n < rows; n++) sum.add(u(n, s), v(n, c));
                expected.push_back(sum.total() * Estimate{factor});
            }
        Numbers<float> given(width * columns);
        library.call("outer", kernels::outer_arguments<T>{.u = u.numbers.data(),
                                                          .u_stride = u.columns,
                                                          .v = v.numbers.data(),
                                                          .v_stride = v.columns,
                                                          .sums = given.data(),
                                                          .rows = rows,
                                                          .width = width,
                                                          .columns = columns,
                                                          .factor = factor});
        check.near(given, expected);
    }
    return check.finish();
}
INSTANTIATE(check_outer)
