// A matrix, and the panels that the product's kernel reads it from: 32 rows side by side, column after column, in steps
// of as many columns as a format multiplies at once.
#pragma once

#include "random.h"

constexpr long PANEL = 32;
inline long filled(long size, long multiple) { return (size + multiple - 1) / multiple * multiple; }

template <typename T> struct Matrix {
    long rows, columns;
    Numbers<T> numbers;

    Matrix(long rows, long columns) : rows(rows), columns(columns), numbers(rows * columns) {}
    Matrix(long rows, long columns, Random &random) : Matrix(rows, columns) { numbers = random.numbers<T>(rows * columns); }

    T &at(long row, long column) { return numbers[row * columns + column]; }
    double operator()(long row, long column) const { return wide(numbers[row * columns + column]); }
    Matrix turned() const {
        Matrix<T> to(columns, rows);
        for (long r = 0; r < rows; r++)
            for (long c = 0; c < columns; c++) to.at(c, r) = numbers[r * columns + c];
        return to;
    }
    // The rows in whole panels; where `narrow`, what is left for half a one lies in that.
    long whole(bool narrow) const {
        long rest = rows % PANEL;
        return narrow && rest <= PANEL / 2 ? rows - rest : filled(rows, PANEL);
    }
    Numbers<T> panels(bool narrow = false) const {
        constexpr long step = Format<T>::STEP;
        long whole_rows = whole(narrow);
        Numbers<T> memory(std::max(whole_rows, filled(rows, PANEL / 2)) * columns);
        for (long r = 0; r < rows; r++) {
            long width = r < whole_rows ? PANEL : PANEL / 2, first = r < whole_rows ? r / PANEL * PANEL : whole_rows;
            for (long c = 0; c < columns; c++)
                memory[first * columns + c / step * width * step + r % width * step + c % step] = numbers[r * columns + c];
        }
        return memory;
    }
};
