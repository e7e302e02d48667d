// The text of one StableHLO function, written operation by operation. Only vocabulary that every
// plugin since StableHLO 0.9 reads is used.
//
// Each member appends one line (or a few) and returns the tensor that it defines. Shapes are static
// and checked: a wrong one is an error of the caller and ends the process. There are no other
// errors, and no effect outside of the object. Not thread-safe.
#ifndef TROUPE_KERNELS_XLA_TEXT_FUNCTION_H_
#define TROUPE_KERNELS_XLA_TEXT_FUNCTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/xla/text/tensor.h"

namespace troupe::kernels::xla {

// Dims of a matrix product: pairs of (dim of the left, dim of the right operand). The result has
// the batch dims, then the left's other dims, then the right's.
struct DotDims {
  std::vector<std::pair<int, int>> batch;
  std::vector<std::pair<int, int>> contracted;
};

class Function {
 public:
  // An argument, and the one that follows all others.
  Tensor Argument(Element element, Shape shape);
  Tensor LastArgument(Element element, Shape shape);

  // All elements have `value`, rounded to the element type.
  Tensor Constant(Element element, const Shape& shape, double value);
  Tensor Constant64(uint64_t value);  // a scalar ui64
  // A vector of these numbers.
  Tensor Vector(Element element, std::span<const double> numbers);
  // Counts from 0 along `dim`.
  Tensor Iota(Element element, const Shape& shape, int dim);

  Tensor Convert(const Tensor& x, Element element);  // x itself if it has that type
  // The same bits as another type of the same size; or f64 as ui32, where a last dim of two
  // follows, and back.
  Tensor Bitcast(const Tensor& x, Element element);
  // "negate", "exponential", "log", "logistic", "sqrt", "rsqrt", "cosine", "sine", "abs", "sign",
  // "is_finite" (→ i1), "not".
  Tensor Unary(std::string_view kind, const Tensor& x);
  // "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "and", "or", "xor",
  // "remainder", "shift_right_logical", "shift_right_arithmetic". Operands have one type; a scalar
  // takes the shape of the other.
  Tensor Binary(std::string_view kind, const Tensor& a, const Tensor& b);
  Tensor Add(const Tensor& a, const Tensor& b) { return Binary("add", a, b); }
  Tensor Subtract(const Tensor& a, const Tensor& b) { return Binary("subtract", a, b); }
  Tensor Multiply(const Tensor& a, const Tensor& b) { return Binary("multiply", a, b); }
  Tensor Divide(const Tensor& a, const Tensor& b) { return Binary("divide", a, b); }
  // With a number of the tensor's type.
  Tensor Add(const Tensor& a, double b) { return Add(a, Constant(a.element, {}, b)); }
  Tensor Multiply(const Tensor& a, double b) { return Multiply(a, Constant(a.element, {}, b)); }
  // "LT", "LE", "GT", "GE", "EQ", "NE" → i1.
  Tensor Compare(std::string_view order, const Tensor& a, const Tensor& b);
  Tensor Compare(std::string_view order, const Tensor& a, double b) {
    return Compare(order, a, Constant(a.element, {}, b));
  }
  // `chosen` i1, a scalar or of the operands' shape. A scalar operand takes the other's shape.
  Tensor Select(const Tensor& chosen, const Tensor& yes, const Tensor& no);

  Tensor Reshape(const Tensor& x, const Shape& shape);  // x itself if it has that shape
  Tensor Transpose(const Tensor& x, const std::vector<int>& dims);
  // `dims[i]` is the dim of the result that is dim i of x.
  Tensor Broadcast(const Tensor& x, const Shape& shape, const std::vector<int>& dims);
  // Elements [begin, end) of `dim`, every `stride`-th.
  Tensor Slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t stride = 1);
  Tensor Concatenate(const std::vector<Tensor>& parts, int dim);
  // Zeros before and after along `dim`.
  Tensor Pad(const Tensor& x, int dim, int64_t before, int64_t after);
  // x with zeros at the end of its dims, and without elements there, so that it has this shape.
  Tensor PadTo(const Tensor& x, const Shape& shape);
  Tensor CutTo(const Tensor& x, const Shape& shape);
  // x with its elements from `begin` of dim 0 on replaced by `part`.
  Tensor Update(const Tensor& x, const Tensor& part, int64_t begin);
  // The same with a scalar i32 as `begin`, and the `count` elements from `begin` on, of dim `dim`.
  // The range must lie within x.
  Tensor UpdateAt(const Tensor& x, const Tensor& part, const Tensor& begin, int dim = 0);
  Tensor SliceAt(const Tensor& x, const Tensor& begin, int64_t count, int dim = 0);

  // The sum, maximum or minimum ("add", "maximum", "minimum") over `dims`, in x's element type.
  Tensor Reduce(std::string_view kind, const Tensor& x, std::vector<int> dims);
  // Accumulates in float32 (float64 for float64 operands), without TF32 or a pass in bfloat16.
  Tensor Dot(const Tensor& a, const Tensor& b, const DotDims& dims);
  // Rows `ids` i32[N] of table [V, …] → [N, …]; an id out of range reads the nearest row.
  Tensor Gather(const Tensor& table, const Tensor& ids);
  // table [V, …] with row ids[n] increased by (or set to, unless `adds`) rows[n]; ids out of range
  // are skipped.
  Tensor Scatter(const Tensor& table, const Tensor& ids, const Tensor& rows, bool adds);
  // Sorts along the last dim by descending key, payloads with their keys; ties stay in order.
  std::pair<Tensor, Tensor> SortDescending(const Tensor& keys, const Tensor& payloads);

  // Tensors that a loop carries from one iteration to the next.
  using State = std::vector<Tensor>;
  // Replaces the state by body(state) as long as goes_on(state), a scalar i1, is true. Both use
  // only tensors of the state that they are given and tensors that they define.
  State While(const State& start, const std::function<Tensor(const State&)>& goes_on,
              const std::function<State(const State&)>& body);

  // The same tensors, none of which is there before all of them are: what reads one of them runs
  // after everything that makes any of them.
  State Barrier(const State& tensors);

  // Text that `write` appends, taken out again so that it can be compared and then be put in. The
  // tensors that it defines get the same names in every such text.
  struct Part {
    std::string lines;
    int names = 0;  // names that are taken after it
    bool operator==(const Part&) const = default;
  };
  Part Capture(const std::function<void()>& write);
  void Insert(const Part& part);
  // Tensors that are defined from now on have other names than those of the part.
  void Reserve(const Part& part);
  // One of several texts, whose results have the same types and whose names are reserved.
  struct Branch {
    Part part;
    State results;
  };
  // The results of branch `index`, a scalar i32 within the number of branches.
  State Case(const Tensor& index, const std::vector<Branch>& branches);

  // The ranks of a slice (SliceModule). Each is a partition of the program, and every tensor is one
  // partition's own. A collective lists groups of equal size in which each partition occurs once;
  // their order is that of the blocks.
  Tensor PartitionId();  // a scalar i32
  using Groups = std::vector<std::vector<int>>;
  // "add" or "maximum" of the group's tensors.
  Tensor AllReduce(std::string_view kind, const Tensor& x, const Groups& groups);
  // The group's tensors, one after the other along dim 0.
  Tensor AllGather(const Tensor& x, const Groups& groups);
  // This partition's block of the sum of the group's tensors; dim 0 has equal blocks.
  Tensor ReduceScatter(const Tensor& x, const Groups& groups);
  // Dim 0 has a block for each partition of the group; afterwards one from each.
  Tensor AllToAll(const Tensor& x, const Groups& groups);
  // x of the partition that has this one as the second of a pair; each is the second of one pair.
  Tensor Permute(const Tensor& x, const std::vector<std::pair<int, int>>& pairs);

  // The module with this function as main. `aliases[i]` is the argument whose memory result i takes
  // over; -1: none.
  std::string Module(const std::vector<Tensor>& results, const std::vector<int>& aliases) const;
  // The same for several partitions. An argument or result of main has the partitions' tensors one
  // after the other along dim 0 (a scalar becomes a tensor of one element), so that each device has
  // its own. REQUIRES: no result is a scalar.
  std::string SliceModule(const std::vector<Tensor>& results, const std::vector<int>& aliases,
                          int partitions) const;

 private:
  // `attributes` of a collective, with a channel of its own and, if asked for, ids of all devices.
  std::string CollectiveAttributes(std::string attributes, bool global_ids);
  std::vector<Tensor> AllArguments() const;
  // The attribute of argument `index` whose memory a result takes over; empty: none does.
  static std::string AliasText(const std::vector<int>& aliases, size_t index);
  Tensor Define(Element element, Shape shape, const std::string& text);
  Tensor Like(const Tensor& scalar, const Shape& shape);  // a scalar as this shape
  // Texts of the indices of a slice: `begin` for dim `dim`, 0 for the others.
  struct Indices {
    std::string names, types;
  };
  Indices IndicesFrom(const Tensor& begin, size_t dims, int dim);
  State OpenBlock(const State& like);  // begins a region that takes such tensors
  std::string ScalarRegion(std::string_view kind, Element element) const;

  std::vector<Tensor> arguments_;
  std::optional<Tensor> last_argument_;
  std::string lines_;
  int next_ = 0;
  int channels_ = 0;
  bool reads_partition_ = false;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_TEXT_FUNCTION_H_
