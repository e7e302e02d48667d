#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "kernels/backend/update_decision.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

struct Format {
  double largest;
  int smallest_exponent, mantissa_bits;
};
constexpr Format kE4M3 = {448, -6, 3};
constexpr Format kE5M2 = {57344, -14, 2};

// Rounds to the nearest number of the format, by its definition; NaN and infinity become NaN.
double Rounded(const Format& format, double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  int exponent = 0;
  std::frexp(x, &exponent);
  const double step =
      std::ldexp(1.0, std::max(exponent - 1, format.smallest_exponent) - format.mantissa_bits);
  return std::clamp(std::nearbyint(x / step) * step, -format.largest, format.largest);
}

// The smallest power of two, at least 2^-100, that scales `amax` to at most the format's largest
// number.
double Scale(const Format& format, double amax) {
  if (amax == 0 || !std::isfinite(amax)) return 1;
  return std::exp2(std::max(std::ceil(std::log2(amax / format.largest)), -100.0));
}

// The larger number; NaN counts as larger than any number.
double Larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

struct Matrix {
  const double* x;
  int64_t rows, columns;
  bool transposed;
  double At(int64_t row, int64_t column) const {
    return transposed ? x[column * rows + row] : x[row * columns + column];
  }
};

void QuantizeForm(const Matrix& x, const Format& format, int64_t block_rows, double* q,
                  double* scales) {
  const int64_t across = (x.columns + model::kFloat8Block - 1) / model::kFloat8Block;
  for (int64_t first = 0; first < x.rows; first += block_rows) {
    for (int64_t block = 0; block < across; ++block) {
      const int64_t last = std::min(first + block_rows, x.rows);
      const int64_t begin = block * model::kFloat8Block,
                    end = std::min(begin + model::kFloat8Block, x.columns);
      double amax = 0;
      for (int64_t r = first; r < last; ++r) {
        for (int64_t c = begin; c < end; ++c) amax = Larger(std::abs(x.At(r, c)), amax);
      }
      const double scale = Scale(format, amax);
      scales[first / block_rows * across + block] = scale;
      for (int64_t r = first; r < last; ++r) {
        for (int64_t c = begin; c < end; ++c)
          q[r * x.columns + c] = Rounded(format, x.At(r, c) / scale);
      }
    }
  }
}

// The tensor to quantise, computed by `source` from the operation's first inputs: [rows, columns].
std::vector<double> Made(const Operation& operation, model::QuantizeSource source, int64_t rows,
                         int64_t columns) {
  const size_t inputs = model::InputsOf(source);
  if (source == model::QuantizeSource::kValue) {
    return {operation.inputs[0], operation.inputs[0] + rows * columns};
  }
  std::vector<double> made(static_cast<size_t>(rows * columns));
  Operation maker = operation;
  maker.inputs.resize(inputs);
  maker.outputs = {made.data()};
  TROUPE_CHECK_OK(source == model::QuantizeSource::kSwiGlu ? SwiGlu(maker) : SwiGluGrad(maker));
  return made;
}

}  // namespace

Status Quantize(const Operation& operation) {
  const auto& attributes = operation.attributes<model::QuantizeAttributes>();
  const Format& format = attributes.format == model::DType::kFloat8E4M3 ? kE4M3 : kE5M2;
  const size_t inputs = model::InputsOf(attributes.source);
  const int64_t rows = operation.Extent(0, 0);
  const int64_t columns = operation.Extent(static_cast<int>(inputs) - 1, 1) /
                          (attributes.source == model::QuantizeSource::kSwiGlu ? 2 : 1);
  const size_t forms = (attributes.rows ? 1 : 0) + (attributes.columns ? 1 : 0);
  const std::vector<double> x = Made(operation, attributes.source, rows, columns);
  double amax = 0;
  for (int64_t i = 0; i < rows * columns; ++i) amax = Larger(std::abs(x[i]), amax);
  double scaled_by = 0;
  if (operation.inputs.size() > inputs) {
    const double* const history = operation.inputs[inputs];
    scaled_by = *std::max_element(history, history + model::kAmaxSteps);
  }
  // Delayed scaling leaves room for twice the amax of earlier steps.
  const double scale = scaled_by > 0 ? 2 * Scale(format, scaled_by) : Scale(format, amax);
  size_t form = 0;
  for (const bool transposed : {false, true}) {
    if (!(transposed ? attributes.columns : attributes.rows)) continue;
    const Matrix matrix = {x.data(), transposed ? columns : rows, transposed ? rows : columns,
                           transposed};
    double* q = operation.outputs[form];
    if (attributes.block_rows > 0) {
      QuantizeForm(matrix, format, attributes.block_rows, q, operation.outputs[forms + form]);
    } else {
      for (int64_t r = 0; r < matrix.rows; ++r) {
        for (int64_t c = 0; c < matrix.columns; ++c)
          q[r * matrix.columns + c] = Rounded(format, matrix.At(r, c) / scale);
      }
      operation.outputs[forms][0] = scale;
    }
    ++form;
  }
  if (!attributes.folds) return OkStatus();
  double& largest = *operation.outputs.back();
  largest = operation.accumulate ? Larger(amax, largest) : amax;
  return OkStatus();
}

Status AmaxHistory(const Operation& operation) {
  if (!DecideUpdate(operation.inputs[0], 0).apply) return OkStatus();
  const size_t count = (operation.inputs.size() - 1) / 2;
  for (size_t i = 0; i < count; ++i) {
    double* const history = operation.inputs[1 + count + i];
    std::copy_backward(history, history + model::kAmaxSteps - 1, history + model::kAmaxSteps);
    history[0] = operation.inputs[1 + i][0];
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
