#include "kernels/xla/text/function.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::xla {
namespace {

bool IsFloat(Element element) {
  return element == Element::kF32 || element == Element::kBF16 || element == Element::kF64;
}

// A number as it stands in dense<…>. Floats are written as bits, which are exact and may be
// infinite.
std::string NumberText(Element element, double value) {
  switch (element) {
    case Element::kF32:
      return fmt::format("0x{:08X}", std::bit_cast<uint32_t>(static_cast<float>(value)));
    case Element::kBF16:
      return fmt::format("0x{:04X}", ToBFloat16(static_cast<float>(value)).bits);
    case Element::kF64:
      return fmt::format("0x{:016X}", std::bit_cast<uint64_t>(value));
    case Element::kI1:
      return value != 0 ? "true" : "false";
    case Element::kI32:
    case Element::kU32:
    case Element::kU64:
      break;
  }
  return fmt::format("{}", static_cast<int64_t>(value));
}

const char* ComparisonOf(Element element) {
  if (IsFloat(element)) return "FLOAT";
  return element == Element::kI32 ? "SIGNED" : "UNSIGNED";
}

std::string List(const std::vector<int>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

}  // namespace

Tensor Function::Argument(Element element, Shape shape) {
  arguments_.push_back({fmt::format("%a{}", arguments_.size()), element, std::move(shape)});
  return arguments_.back();
}

Tensor Function::LastArgument(Element element, Shape shape) {
  last_argument_ = Tensor{"%last", element, std::move(shape)};
  return *last_argument_;
}

Tensor Function::Define(Element element, Shape shape, const std::string& text) {
  Tensor tensor{fmt::format("%{}", next_++), element, std::move(shape)};
  lines_ += fmt::format("    {} = {}\n", tensor.name, text);
  return tensor;
}

Tensor Function::Constant(Element element, const Shape& shape, double value) {
  return Define(element, shape,
                fmt::format("stablehlo.constant dense<{}> : {}", NumberText(element, value),
                            TypeText(element, shape)));
}

Tensor Function::Constant64(uint64_t value) {
  return Define(Element::kU64, {},
                fmt::format("stablehlo.constant dense<{}> : tensor<ui64>", value));
}

Tensor Function::Vector(Element element, std::span<const double> numbers) {
  std::string list;
  for (const double number : numbers) {
    if (!list.empty()) list += ", ";
    list += NumberText(element, number);
  }
  const Shape shape = {static_cast<int64_t>(numbers.size())};
  return Define(element, shape,
                fmt::format("stablehlo.constant dense<[{}]> : {}", list, TypeText(element, shape)));
}

Tensor Function::Iota(Element element, const Shape& shape, int dim) {
  return Define(element, shape,
                fmt::format("stablehlo.iota dim = {} : {}", dim, TypeText(element, shape)));
}

Tensor Function::Convert(const Tensor& x, Element element) {
  if (x.element == element) return x;
  return Define(element, x.shape,
                fmt::format("stablehlo.convert {} : ({}) -> {}", x.name, TypeText(x),
                            TypeText(element, x.shape)));
}

Tensor Function::Bitcast(const Tensor& x, Element element) {
  Shape shape = x.shape;
  if (x.element == Element::kF64 && element == Element::kU32) shape.push_back(2);
  if (x.element == Element::kU32 && element == Element::kF64) shape.pop_back();
  TROUPE_CHECK(element != Element::kF64 || x.shape.back() == 2, "f64 has the bits of two ui32");
  return Define(element, shape,
                fmt::format("stablehlo.bitcast_convert {} : ({}) -> {}", x.name, TypeText(x),
                            TypeText(element, shape)));
}

Tensor Function::Unary(std::string_view kind, const Tensor& x) {
  if (kind == "is_finite") {
    return Define(Element::kI1, x.shape,
                  fmt::format("stablehlo.is_finite {} : ({}) -> {}", x.name, TypeText(x),
                              TypeText(Element::kI1, x.shape)));
  }
  return Define(x.element, x.shape, fmt::format("stablehlo.{} {} : {}", kind, x.name, TypeText(x)));
}

Tensor Function::Like(const Tensor& scalar, const Shape& shape) {
  if (scalar.shape == shape) return scalar;
  TROUPE_CHECK(scalar.shape.empty(), "an operand of another shape is no scalar");
  return Broadcast(scalar, shape, {});
}

Tensor Function::Binary(std::string_view kind, const Tensor& a, const Tensor& b) {
  TROUPE_CHECK(a.element == b.element, "the operands have different types");
  const Shape& shape = a.shape.empty() ? b.shape : a.shape;
  const Tensor left = Like(a, shape), right = Like(b, shape);
  return Define(a.element, shape,
                fmt::format("stablehlo.{} {}, {} : {}", kind, left.name, right.name,
                            TypeText(a.element, shape)));
}

Tensor Function::Compare(std::string_view order, const Tensor& a, const Tensor& b) {
  TROUPE_CHECK(a.element == b.element, "the operands have different types");
  const Shape& shape = a.shape.empty() ? b.shape : a.shape;
  const Tensor left = Like(a, shape), right = Like(b, shape);
  const std::string type = TypeText(a.element, shape);
  return Define(
      Element::kI1, shape,
      fmt::format("stablehlo.compare {}, {}, {}, {} : ({}, {}) -> {}", order, left.name, right.name,
                  ComparisonOf(a.element), type, type, TypeText(Element::kI1, shape)));
}

Tensor Function::Select(const Tensor& chosen, const Tensor& yes, const Tensor& no) {
  TROUPE_CHECK(yes.element == no.element, "the operands have different types");
  const Shape& shape = yes.shape.empty() ? no.shape : yes.shape;
  const Tensor left = Like(yes, shape), right = Like(no, shape);
  TROUPE_CHECK(chosen.shape.empty() || chosen.shape == shape, "the choice has another shape");
  return Define(yes.element, shape,
                fmt::format("stablehlo.select {}, {}, {} : {}, {}", chosen.name, left.name,
                            right.name, TypeText(chosen), TypeText(yes.element, shape)));
}

Tensor Function::Reshape(const Tensor& x, const Shape& shape) {
  if (x.shape == shape) return x;
  TROUPE_CHECK(ElementsOf(x.shape) == ElementsOf(shape), "a reshape changes the size");
  return Define(x.element, shape,
                fmt::format("stablehlo.reshape {} : ({}) -> {}", x.name, TypeText(x),
                            TypeText(x.element, shape)));
}

Tensor Function::Transpose(const Tensor& x, const std::vector<int>& dims) {
  Shape shape;
  for (const int dim : dims) shape.push_back(x.shape[dim]);
  return Define(x.element, shape,
                fmt::format("stablehlo.transpose {}, dims = {} : ({}) -> {}", x.name, List(dims),
                            TypeText(x), TypeText(x.element, shape)));
}

Tensor Function::Broadcast(const Tensor& x, const Shape& shape, const std::vector<int>& dims) {
  TROUPE_CHECK(dims.size() == x.shape.size(), "not one dim of the result for each dim");
  return Define(x.element, shape,
                fmt::format("stablehlo.broadcast_in_dim {}, dims = {} : ({}) -> {}", x.name,
                            List(dims), TypeText(x), TypeText(x.element, shape)));
}

Tensor Function::Slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t stride) {
  if (begin == 0 && end == x.shape[dim] && stride == 1) return x;
  Shape shape = x.shape;
  shape[dim] = (end - begin + stride - 1) / stride;
  std::string ranges;
  for (int d = 0; d < static_cast<int>(x.shape.size()); ++d) {
    if (d > 0) ranges += ", ";
    ranges +=
        d == dim ? fmt::format("{}:{}:{}", begin, end, stride) : fmt::format("0:{}", x.shape[d]);
  }
  return Define(x.element, shape,
                fmt::format("stablehlo.slice {} [{}] : ({}) -> {}", x.name, ranges, TypeText(x),
                            TypeText(x.element, shape)));
}

Tensor Function::Concatenate(const std::vector<Tensor>& parts, int dim) {
  if (parts.size() == 1) return parts[0];
  Shape shape = parts[0].shape;
  shape[dim] = 0;
  std::vector<std::string> names, types;
  for (const Tensor& part : parts) {
    shape[dim] += part.shape[dim];
    names.push_back(part.name);
    types.push_back(TypeText(part));
  }
  return Define(
      parts[0].element, shape,
      fmt::format("stablehlo.concatenate {}, dim = {} : ({}) -> {}", fmt::join(names, ", "), dim,
                  fmt::join(types, ", "), TypeText(parts[0].element, shape)));
}

Tensor Function::Pad(const Tensor& x, int dim, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return x;
  const auto fill = [&](int64_t extent) {
    Shape shape = x.shape;
    shape[dim] = extent;
    return Constant(x.element, shape, 0);
  };
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(fill(before));
  parts.push_back(x);
  if (after > 0) parts.push_back(fill(after));
  return Concatenate(parts, dim);
}

Tensor Function::PadTo(const Tensor& x, const Shape& shape) {
  Tensor padded = x;
  for (size_t d = 0; d < shape.size(); ++d)
    padded = Pad(padded, static_cast<int>(d), 0, shape[d] - padded.shape[d]);
  return padded;
}

Tensor Function::CutTo(const Tensor& x, const Shape& shape) {
  Tensor cut = x;
  for (size_t d = 0; d < shape.size(); ++d) cut = Slice(cut, static_cast<int>(d), 0, shape[d]);
  return cut;
}

Tensor Function::Update(const Tensor& x, const Tensor& part, int64_t begin) {
  if (x.shape == part.shape) return part;
  return UpdateAt(x, part, Constant(Element::kI32, {}, static_cast<double>(begin)));
}

Tensor Function::UpdateAt(const Tensor& x, const Tensor& part, const Tensor& begin, int dim) {
  TROUPE_CHECK(x.element == part.element && x.shape.size() == part.shape.size(),
               "the part is of another kind");
  const Indices at = IndicesFrom(begin, x.shape.size(), dim);
  return Define(
      x.element, x.shape,
      fmt::format("stablehlo.dynamic_update_slice {}, {}, {} : ({}, {}, {}) -> {}", x.name,
                  part.name, at.names, TypeText(x), TypeText(part), at.types, TypeText(x)));
}

Tensor Function::SliceAt(const Tensor& x, const Tensor& begin, int64_t count, int dim) {
  Shape shape = x.shape;
  shape[dim] = count;
  const Indices at = IndicesFrom(begin, shape.size(), dim);
  return Define(
      x.element, shape,
      fmt::format("stablehlo.dynamic_slice {}, {}, sizes = [{}] : ({}, {}) -> {}", x.name, at.names,
                  fmt::join(shape, ", "), TypeText(x), at.types, TypeText(x.element, shape)));
}

Function::Indices Function::IndicesFrom(const Tensor& begin, size_t dims, int dim) {
  TROUPE_CHECK(begin.element == Element::kI32 && begin.shape.empty(), "an index is no scalar i32");
  const std::string zero = dims == 1 ? "" : Constant(Element::kI32, {}, 0).name;
  std::vector<std::string> names(dims, zero);
  names[dim] = begin.name;
  const std::vector<std::string> types(dims, TypeText(begin));
  return {fmt::format("{}", fmt::join(names, ", ")), fmt::format("{}", fmt::join(types, ", "))};
}

Tensor Function::Reduce(std::string_view kind, const Tensor& x, std::vector<int> dims) {
  const double most = IsFloat(x.element) ? INFINITY : std::numeric_limits<int32_t>::max();
  const double none = kind == "maximum" ? -most : kind == "minimum" ? most : 0.0;
  const Tensor start = Constant(x.element, {}, none);
  Shape shape;
  for (int d = 0; d < static_cast<int>(x.shape.size()); ++d) {
    if (std::ranges::find(dims, d) == dims.end()) shape.push_back(x.shape[d]);
  }
  return Define(x.element, shape,
                fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.{} across dimensions "
                            "= {} : ({}, {}) -> {}",
                            x.name, start.name, kind, List(dims), TypeText(x), TypeText(start),
                            TypeText(x.element, shape)));
}

Tensor Function::Dot(const Tensor& a, const Tensor& b, const DotDims& dims) {
  TROUPE_CHECK(a.element == b.element, "the operands have different types");
  const auto first = [](const std::vector<std::pair<int, int>>& pairs) {
    std::vector<int> list;
    for (const auto& pair : pairs) list.push_back(pair.first);
    return list;
  };
  const auto second = [](const std::vector<std::pair<int, int>>& pairs) {
    std::vector<int> list;
    for (const auto& pair : pairs) list.push_back(pair.second);
    return list;
  };
  const std::vector<int> a_batch = first(dims.batch), b_batch = second(dims.batch);
  const std::vector<int> a_sum = first(dims.contracted), b_sum = second(dims.contracted);
  Shape shape;
  for (const int d : a_batch) shape.push_back(a.shape[d]);
  const auto add_free = [&](const Tensor& x, const std::vector<int>& batch,
                            const std::vector<int>& sum) {
    for (int d = 0; d < static_cast<int>(x.shape.size()); ++d) {
      if (std::ranges::find(batch, d) == batch.end() && std::ranges::find(sum, d) == sum.end())
        shape.push_back(x.shape[d]);
    }
  };
  add_free(a, a_batch, a_sum);
  add_free(b, b_batch, b_sum);
  const Element element = a.element == Element::kF64 ? Element::kF64 : Element::kF32;
  const std::string batch =
      dims.batch.empty() ? ""
                         : fmt::format("batching_dims = {} x {}, ", List(a_batch), List(b_batch));
  return Define(element, shape,
                fmt::format("stablehlo.dot_general {}, {}, {}contracting_dims = {} x {}, precision "
                            "= [HIGHEST, HIGHEST] : ({}, {}) -> {}",
                            a.name, b.name, batch, List(a_sum), List(b_sum), TypeText(a),
                            TypeText(b), TypeText(element, shape)));
}

Tensor Function::Gather(const Tensor& table, const Tensor& ids) {
  const Tensor column = Reshape(ids, {ids.shape[0], 1});
  Shape shape = table.shape, slice = table.shape;
  shape[0] = ids.shape[0];
  slice[0] = 1;
  std::vector<int> offsets;
  for (int d = 1; d < static_cast<int>(table.shape.size()); ++d) offsets.push_back(d);
  return Define(
      table.element, shape,
      fmt::format("\"stablehlo.gather\"({}, {}) <{{dimension_numbers = #stablehlo.gather<"
                  "offset_dims = {}, collapsed_slice_dims = [0], start_index_map = [0], "
                  "index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: "
                  "{}>}}> : ({}, {}) -> {}",
                  table.name, column.name, List(offsets), fmt::join(slice, ", "), TypeText(table),
                  TypeText(column), TypeText(table.element, shape)));
}

std::string Function::ScalarRegion(std::string_view kind, Element element) const {
  const std::string type = TypeText(element, {});
  if (kind == "set")
    return fmt::format("({{^bb0(%x: {0}, %y: {0}): stablehlo.return %y : {0}}})", type);
  return fmt::format(
      "({{^bb0(%x: {0}, %y: {0}): %z = stablehlo.{1} %x, %y : {0} stablehlo.return %z : {0}}})",
      type, kind);
}

Tensor Function::Scatter(const Tensor& table, const Tensor& ids, const Tensor& rows, bool adds) {
  const Tensor column = Reshape(ids, {ids.shape[0], 1});
  std::vector<int> windows;
  for (int d = 1; d < static_cast<int>(table.shape.size()); ++d) windows.push_back(d);
  return Define(
      table.element, table.shape,
      fmt::format("\"stablehlo.scatter\"({}, {}, {}) <{{indices_are_sorted = false, "
                  "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {}, "
                  "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                  "index_vector_dim = 1>, unique_indices = false}}> {} : ({}, {}, {}) -> {}",
                  table.name, column.name, rows.name, List(windows),
                  ScalarRegion(adds ? "add" : "set", table.element), TypeText(table),
                  TypeText(column), TypeText(rows), TypeText(table)));
}

Function::State Function::Barrier(const State& tensors) {
  const std::string name = fmt::format("%{}", next_++);
  std::string operands, types;
  State results;
  for (const Tensor& tensor : tensors) {
    const char* const comma = results.empty() ? "" : ", ";
    operands += comma + tensor.name;
    types += comma + TypeText(tensor);
    // A single result has no number.
    const std::string number = tensors.size() > 1 ? fmt::format("#{}", results.size()) : "";
    results.push_back({name + number, tensor.element, tensor.shape});
  }
  lines_ +=
      fmt::format("    {}{} = stablehlo.optimization_barrier {} : {}\n", name,
                  tensors.size() > 1 ? fmt::format(":{}", tensors.size()) : "", operands, types);
  return results;
}

std::pair<Tensor, Tensor> Function::SortDescending(const Tensor& keys, const Tensor& payloads) {
  const std::string name = fmt::format("%{}", next_++);
  const std::string key = TypeText(keys.element, {}), payload = TypeText(payloads.element, {});
  lines_ += fmt::format(
      "    {}:2 = \"stablehlo.sort\"({}, {}) <{{dimension = {} : i64, is_stable = true}}> "
      "({{^bb0(%x: {}, %y: {}, %v: {}, %w: {}): %z = stablehlo.compare GT, %x, %y, {} : ({}, {}) "
      "-> tensor<i1> stablehlo.return %z : tensor<i1>}}) : ({}, {}) -> ({}, {})\n",
      name, keys.name, payloads.name, keys.shape.size() - 1, key, key, payload, payload,
      ComparisonOf(keys.element), key, key, TypeText(keys), TypeText(payloads), TypeText(keys),
      TypeText(payloads));
  return {{name + "#0", keys.element, keys.shape}, {name + "#1", payloads.element, payloads.shape}};
}

Function::State Function::OpenBlock(const State& like) {
  State state;
  std::vector<std::string> arguments;
  for (const Tensor& tensor : like) {
    state.push_back({fmt::format("%{}", next_++), tensor.element, tensor.shape});
    arguments.push_back(fmt::format("{}: {}", state.back().name, TypeText(tensor)));
  }
  lines_ += fmt::format("    ^bb0({}):\n", fmt::join(arguments, ", "));
  return state;
}

Function::State Function::While(const State& start,
                                const std::function<Tensor(const State&)>& goes_on,
                                const std::function<State(const State&)>& body) {
  const auto list = [](const State& state, const auto& text) {
    std::vector<std::string> texts;
    for (const Tensor& tensor : state) texts.push_back(text(tensor));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  const auto name = [](const Tensor& tensor) { return tensor.name; };
  const auto type = [](const Tensor& tensor) { return TypeText(tensor); };
  const std::string result = fmt::format("%{}", next_++);
  lines_ += fmt::format("    {}:{} = \"stablehlo.while\"({}) ({{\n", result, start.size(),
                        list(start, name));
  const Tensor more = goes_on(OpenBlock(start));
  lines_ += fmt::format("    stablehlo.return {} : {}\n    }}, {{\n", more.name, TypeText(more));
  const State next = body(OpenBlock(start));
  TROUPE_CHECK(list(next, type) == list(start, type), "the state of a loop changes its types");
  lines_ += fmt::format("    stablehlo.return {0} : {1}\n    }}) : ({1}) -> ({1})\n",
                        list(next, name), list(next, type));
  State results = start;
  for (size_t i = 0; i < results.size(); ++i) results[i].name = fmt::format("{}#{}", result, i);
  return results;
}

Function::Part Function::Capture(const std::function<void()>& write) {
  Part part;
  const int names = next_;
  std::swap(part.lines, lines_);
  write();
  std::swap(part.lines, lines_);
  part.names = std::exchange(next_, names);
  return part;
}

void Function::Insert(const Part& part) {
  lines_ += part.lines;
  next_ = part.names;
}

void Function::Reserve(const Part& part) { next_ = std::max(next_, part.names); }

Function::State Function::Case(const Tensor& index, const std::vector<Branch>& branches) {
  std::vector<std::string> regions, types;
  for (const Tensor& result : branches[0].results) types.push_back(TypeText(result));
  const std::string type_list = fmt::format("{}", fmt::join(types, ", "));
  for (const Branch& branch : branches) {
    std::vector<std::string> names;
    for (const Tensor& result : branch.results) names.push_back(result.name);
    regions.push_back(fmt::format("{{\n{}    stablehlo.return {} : {}\n    }}", branch.part.lines,
                                  fmt::join(names, ", "), type_list));
  }
  State results = branches[0].results;
  const std::string name = fmt::format("%{}", next_++);
  lines_ +=
      fmt::format("    {}:{} = \"stablehlo.case\"({}) ({}) : ({}) -> ({})\n", name, results.size(),
                  index.name, fmt::join(regions, ", "), TypeText(index), type_list);
  for (size_t i = 0; i < results.size(); ++i) results[i].name = fmt::format("{}#{}", name, i);
  return results;
}

std::vector<Tensor> Function::AllArguments() const {
  std::vector<Tensor> all = arguments_;
  if (last_argument_.has_value()) all.push_back(*last_argument_);
  return all;
}

std::string Function::AliasText(const std::vector<int>& aliases, size_t index) {
  for (size_t r = 0; r < aliases.size(); ++r) {
    if (aliases[r] == static_cast<int>(index))
      return fmt::format("tf.aliasing_output = {} : i32", r);
  }
  return "";
}

std::string Function::Module(const std::vector<Tensor>& results,
                             const std::vector<int>& aliases) const {
  std::vector<std::string> arguments, names, types;
  for (const Tensor& argument : AllArguments()) {
    const std::string alias = AliasText(aliases, arguments.size());
    arguments.push_back(fmt::format("{}: {}{}", argument.name, TypeText(argument),
                                    alias.empty() ? "" : fmt::format(" {{{}}}", alias)));
  }
  for (const Tensor& result : results) {
    names.push_back(result.name);
    types.push_back(TypeText(result));
  }
  return fmt::format(
      "module @troupe {{\n  func.func public @main({}) -> ({}) {{\n{}    return {} : {}\n  "
      "}}\n}}\n",
      fmt::join(arguments, ", "), fmt::join(types, ", "), lines_, fmt::join(names, ", "),
      fmt::join(types, ", "));
}

}  // namespace troupe::kernels::xla
