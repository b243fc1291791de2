// Matrices on their way into panels: turned, or an adapter's from its fp32 weights.
#include "kernels.h"
#include "matrix.h"

template <typename T> bool check_transpose(const Library &library) {
    Check<T> check("transpose");
    Random random(1);
    for (auto [rows, columns] : {std::pair{64L, 96L}, {70L, 82L}, {416L, 330L}, {2L, 34L}}) {
        Matrix<T> matrix(rows, columns, random);
        Numbers<T> expected = matrix.turned().panels(), given(expected.size());
        Numbers<T> panels = matrix.panels();
        library.call("transpose", kernels::transpose_arguments<T>{panels.data(), given.data(), rows, columns});
        check.same(given, expected);
    }
    return check.finish();
}

// Two matrices, one below the other and to its right, of which the second is scaled and read from its transpose.
template <typename T> bool check_pack_adapter(const Library &library) {
    Check<T> check("pack_adapter");
    Random random(2);
    constexpr long upper = 37, lower = 8, left = 20, right = 14, columns = left + right;
    const float scale = 0.7f;
    Numbers<float> first = random.numbers<float>(upper * left), second = random.numbers<float>(lower * right);
    Matrix<T> expected(upper + lower, columns);
    for (long r = 0; r < upper; r++)
        for (long c = 0; c < left; c++) expected.at(r, c) = nearest<T>(first[r * left + c]);
    for (long r = 0; r < lower; r++)
        for (long c = 0; c < right; c++) expected.at(upper + r, left + c) = nearest<T>(scale * second[c * lower + r]);
    for (bool narrow : {false, true}) {
        Numbers<T> panels = expected.panels(narrow), given(panels.size());
        T *to = given.data();
        long whole = expected.whole(narrow);
        const kernels::AdapterBlock<T> blocks[] = {
            {first.data(), left, 1, upper, left, to, 0, 0, columns, whole, false},
            {second.data(), 1, lower, lower, right, to, upper, left, columns, whole, true},
        };
        library.call("pack_adapter", kernels::pack_adapter_arguments<T>{blocks, 2, scale});
        check.same(given, panels);
    }
    return check.finish();
}
INSTANTIATE(check_transpose)
INSTANTIATE(check_pack_adapter)
