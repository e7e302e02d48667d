#include "checkpoint/read/diff.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/slice.h"
#include "checkpoint/read/shard_reader.h"

namespace troupe {
namespace {

constexpr int64_t kUnitBytes = 8 << 20;
constexpr int64_t kBatchBytes = 64 << 20;

struct GlobalTensor {
  std::string dtype;
  Extents shape;
};

std::map<std::string, GlobalTensor> TensorsOf(const v1::CheckpointManifest& manifest) {
  std::map<std::string, GlobalTensor> tensors;
  for (const v1::ShardFile& shard : manifest.shards()) {
    for (const v1::TensorSlice& tensor : shard.tensors()) {
      tensors[tensor.name()] = {
          tensor.dtype(), Extents(tensor.global_shape().begin(), tensor.global_shape().end())};
    }
  }
  return tensors;
}

template <typename T>
double NumberAt(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return static_cast<double>(value);
}

double BFloat16At(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

double Float16At(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 0x400, exponent - 25);
}

using ReadNumber = double (*)(const std::byte*);

// Returns null for a dtype that is not compared numerically.
ReadNumber NumberReader(const std::string& dtype) {
  static const std::map<std::string, ReadNumber> readers = {
      {"F64", NumberAt<double>},  {"F32", NumberAt<float>},    {"F16", Float16At},
      {"BF16", BFloat16At},       {"I64", NumberAt<int64_t>},  {"U64", NumberAt<uint64_t>},
      {"I32", NumberAt<int32_t>}, {"U32", NumberAt<uint32_t>}, {"I16", NumberAt<int16_t>},
      {"U16", NumberAt<uint16_t>}};
  const auto found = readers.find(dtype);
  return found == readers.end() ? nullptr : found->second;
}

void CompareBytes(std::span<const std::byte> a, std::span<const std::byte> b,
                  const std::string& dtype, TensorDifference& difference) {
  if (std::ranges::equal(a, b)) return;
  const ReadNumber read = NumberReader(dtype);
  const size_t item = static_cast<size_t>(*DtypeBits(dtype)) / 8;
  difference.numeric = read != nullptr;
  for (size_t at = 0; at < a.size(); at += item) {
    if (std::memcmp(&a[at], &b[at], item) == 0) continue;
    ++difference.differing;
    if (read == nullptr) continue;
    const double x = read(&a[at]);
    const double y = read(&b[at]);
    double absolute = std::abs(x - y);
    double relative = absolute == 0 ? 0 : absolute / std::max(std::abs(x), std::abs(y));
    if (!std::isfinite(x) || !std::isfinite(y)) {
      absolute = relative = std::numeric_limits<double>::infinity();
    }
    difference.max_absolute = std::max(difference.max_absolute, absolute);
    difference.max_relative = std::max(difference.max_relative, relative);
  }
}

// Rows of one tensor that are compared together.
struct Unit {
  GlobalSlice slice;
  size_t tensor = 0;  // index in the differences
};

// Loads and compares units, one batch at a time.
class Comparison {
 public:
  Comparison(FileSystem& files, const std::string& a, const v1::CheckpointManifest& manifest_a,
             const std::string& b, const v1::CheckpointManifest& manifest_b,
             std::vector<TensorDifference>& differences)
      : files_(files),
        a_(a),
        b_(b),
        manifest_a_(manifest_a),
        manifest_b_(manifest_b),
        differences_(differences) {}

  Status Add(Unit unit) {
    const int64_t bytes = *DenseBytes(unit.slice.box.shape, unit.slice.dtype);
    if (bytes_ > 0 && bytes_ + bytes > kBatchBytes) TROUPE_RETURN_IF_ERROR(Flush());
    bytes_ += bytes;
    units_.push_back(std::move(unit));
    return OkStatus();
  }

  Status Flush() {
    std::vector<std::vector<std::byte>> data_a;
    std::vector<std::vector<std::byte>> data_b;
    TROUPE_RETURN_IF_ERROR(Load(a_, manifest_a_, &data_a));
    TROUPE_RETURN_IF_ERROR(Load(b_, manifest_b_, &data_b));
    for (size_t i = 0; i < units_.size(); ++i) {
      CompareBytes(data_a[i], data_b[i], units_[i].slice.dtype, differences_[units_[i].tensor]);
    }
    units_.clear();
    bytes_ = 0;
    return OkStatus();
  }

 private:
  Status Load(const std::string& directory, const v1::CheckpointManifest& manifest,
              std::vector<std::vector<std::byte>>* data) {
    data->reserve(units_.size());
    std::vector<LoadTarget> targets;
    for (const Unit& unit : units_) {
      data->emplace_back(static_cast<size_t>(*DenseBytes(unit.slice.box.shape, unit.slice.dtype)));
      targets.push_back({unit.slice, data->back()});
    }
    return Annotate(LoadSlices(files_, directory, manifest, targets), directory);
  }

  FileSystem& files_;
  const std::string& a_;
  const std::string& b_;
  const v1::CheckpointManifest& manifest_a_;
  const v1::CheckpointManifest& manifest_b_;
  std::vector<TensorDifference>& differences_;
  std::vector<Unit> units_;
  int64_t bytes_ = 0;
};

Status AddRows(const std::string& name, const GlobalTensor& tensor, size_t index,
               Comparison& comparison) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t bytes, DenseBytes(tensor.shape, tensor.dtype));
  if (bytes == 0) return OkStatus();
  GlobalSlice slice{
      name, tensor.dtype, tensor.shape, {Extents(tensor.shape.size(), 0), tensor.shape}};
  if (tensor.shape.empty()) return comparison.Add({std::move(slice), index});
  const int64_t rows = tensor.shape[0];
  const int64_t rows_at_once = std::max<int64_t>(1, kUnitBytes / (bytes / rows));
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    slice.box.offset[0] = row;
    slice.box.shape[0] = std::min(rows_at_once, rows - row);
    TROUPE_RETURN_IF_ERROR(comparison.Add({slice, index}));
  }
  return OkStatus();
}

}  // namespace

StatusOr<CheckpointDifference> DiffCheckpoints(FileSystem& files, const std::string& a,
                                               const v1::CheckpointManifest& manifest_a,
                                               const std::string& b,
                                               const v1::CheckpointManifest& manifest_b) {
  const std::map<std::string, GlobalTensor> tensors_a = TensorsOf(manifest_a);
  const std::map<std::string, GlobalTensor> tensors_b = TensorsOf(manifest_b);
  CheckpointDifference result;
  std::vector<TensorDifference> differences;
  Comparison comparison(files, a, manifest_a, b, manifest_b, differences);
  for (const auto& [name, tensor] : tensors_a) {
    TensorDifference& difference = differences.emplace_back();
    difference.name = name;
    const auto other = tensors_b.find(name);
    if (other == tensors_b.end()) {
      difference.reason = "only in the first";
    } else if (other->second.dtype != tensor.dtype || other->second.shape != tensor.shape) {
      difference.reason =
          fmt::format("{} of {} in the first, {} of {} in the second", tensor.dtype,
                      ToString(tensor.shape), other->second.dtype, ToString(other->second.shape));
    } else {
      difference.elements = *Elements(tensor.shape);
      ++result.tensors;
      result.elements += difference.elements;
      TROUPE_RETURN_IF_ERROR(AddRows(name, tensor, differences.size() - 1, comparison));
    }
  }
  TROUPE_RETURN_IF_ERROR(comparison.Flush());
  for (const auto& [name, tensor] : tensors_b) {
    if (tensors_a.contains(name)) continue;
    TensorDifference& difference = differences.emplace_back();
    difference.name = name;
    difference.reason = "only in the second";
  }
  for (TensorDifference& difference : differences) {
    if (difference.differing > 0 || !difference.reason.empty()) {
      result.differing.push_back(std::move(difference));
    }
  }
  std::ranges::sort(result.differing, {}, &TensorDifference::name);
  return result;
}

}  // namespace troupe
