// y = x W^T + bias + plus + h B^T, h = x A^T, with each row's own A and B.
#include "kernels.h"
#include "matrix.h"

namespace {

// An adapter of `layers` linears below each other, each with `rank` columns of its own; none where `rank` is 0.
template <typename T> struct Adapter {
    long rank;
    Matrix<T> a, b;
    Numbers<T> a_panels, b_panels;
    Integers firsts;

    Adapter(long rank, long layers, long inputs, long outputs, Random &random)
        : rank(rank), a(rank * layers, inputs, random), b(outputs, rank, random),
          a_panels(a.panels(true)), b_panels(b.panels()) {
        for (long panel = 0; panel < filled(outputs, PANEL) / PANEL; panel++)
            firsts.push_back(panel * PANEL * layers / filled(outputs, PANEL) * rank);
    }
    long width() const { return filled(a.rows, PANEL); }
    kernels::AdapterRows<T> rows(long start, long stop) const {
        return {start, stop, width(), a.rows, rank, a_panels.data(), b_panels.data(), firsts.data()};
    }
};

template <typename T> struct Product {
    long length, inputs, outputs;
    Random random{uint32_t(length)};
    Matrix<T> x{length, inputs, random}, w{outputs, inputs, random}, plus{length, outputs, random};
    Numbers<float> bias = random.numbers<float>(outputs);
    std::vector<Adapter<T>> adapters{};
    Integers stops{};  // The rows of each adapter end here.

    void add(long stop, long rank, long layers) {
        adapters.emplace_back(rank, layers, inputs, outputs, random);
        stops.push_back(stop);
    }
    const Adapter<T> &of(long row) const {
        return adapters[std::upper_bound(stops.begin(), stops.end(), row) - stops.begin()];
    }
    std::vector<Estimate> half(long row) const {
        const Adapter<T> &adapter = of(row);
        std::vector<Estimate> h;
        for (long column = 0; column < adapter.a.rows; column++) {
            Sum sum;
            for (long i = 0; i < inputs; i++) sum.add(x(row, i), adapter.a(column, i));
            h.push_back(stored<T>(sum.total()));
        }
        return h;
    }
    Estimate result(long row, long output, const std::vector<Estimate> &h) const {
        const Adapter<T> &adapter = of(row);
        Sum sum;
        sum.add({bias[output]}), sum.add({plus(row, output)});
        for (long i = 0; i < inputs; i++) sum.add(x(row, i), w(output, i));
        for (long r = 0; r < adapter.rank; r++)
            sum.add(h[adapter.firsts[output / PANEL] + r] * Estimate{adapter.b(output, r)});
        return sum.total();
    }
    std::vector<Estimate> expected() const {
        std::vector<Estimate> y;
        for (long row = 0; row < length; row++) {
            std::vector<Estimate> h = half(row);
            for (long output = 0; output < outputs; output++) y.push_back(result(row, output, h));
        }
        return y;
    }
    Numbers<T> given(const Library &library) const {
        long width = 0;
        std::vector<kernels::AdapterRows<T>> rows;
        for (size_t i = 0; i < adapters.size(); i++) {
            width = std::max(width, adapters[i].width());
            rows.push_back(adapters[i].rows(i ? stops[i - 1] : 0, stops[i]));
        }
        Numbers<float> filled_bias = bias;
        filled_bias.resize(filled(outputs, PANEL));
        Numbers<T> y(length * outputs), h(length * width), panels = w.panels();
        library.call("product", kernels::product_arguments<T>{.x = x.numbers.data(),
                                                              .adapter_x = x.numbers.data(),
                                                              .w = panels.data(),
                                                              .bias = filled_bias.data(),
                                                              .plus = plus.numbers.data(),
                                                              .y = y.data(),
                                                              .h = h.data(),
                                                              .length = length,
                                                              .inputs = inputs,
                                                              .outputs = outputs,
                                                              .h_width = width,
                                                              .adapter_rows = rows.data(),
                                                              .adapter_rows_count = long(rows.size())});
        return y;
    }
};

}  // namespace

template <typename T> bool check_product(const Library &library) {
    Check<T> check("product");
    // Several adapters, of which tiles hold more than one; the last panels are whole, half full, less than half full.
    for (long outputs : {96, 114, 74}) {
        Product<T> mixed{37, 70, outputs};
        mixed.add(5, 8, 1), mixed.add(6, 0, 1), mixed.add(25, 20, outputs == 96 ? 3 : 1), mixed.add(37, 34, 1);
        check.near(mixed.given(library), mixed.expected());
    }
    // More inputs than are summed at once, on all threads.
    Product<T> long_sums{98, 4162, 34};
    long_sums.add(98, 0, 1);
    check.near(long_sums.given(library), long_sums.expected());
    return check.finish();
}
INSTANTIATE(check_product)
