#include "kernels/xla/runtime/segment.h"

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {
namespace {

using model::Op;
using model::Program;
using model::Value;
using model::ValueId;

// The storage of values while operations are written: each root is the tensor last assigned to it,
// or an argument.
class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  Status Lower(const Op& op) {
    const std::function<Tensor(ValueId)> read = [this](ValueId id) { return Read(id); };
    const std::function<void(ValueId, const Tensor&)> write = [this](ValueId id, const Tensor& x) {
      Write(id, x);
    };
    const std::function<Tensor()> first = [this] { return FirstMicrobatch(); };
    return Annotate(xla::Lower({program_, op, text_, read, write, first}),
                    OperationName(program_, op));
  }

  SegmentText Finish(const std::function<bool(ValueId)>& is_result) {
    SegmentText segment;
    std::vector<Tensor> results;
    for (const auto& [root, tensor] : roots_) {
      if (!written_.contains(root) || !is_result(root)) continue;
      const auto argument = argument_of_.find(root);
      segment.results.push_back(root);
      segment.aliases.push_back(argument == argument_of_.end() ? -1 : argument->second);
      results.push_back(tensor);
    }
    segment.arguments = std::move(arguments_);
    segment.reads_first_microbatch = first_.has_value();
    if (!results.empty()) segment.module = text_.Module(results, segment.aliases);
    return segment;
  }

 private:
  Tensor Root(ValueId root) {
    const auto found = roots_.find(root);
    if (found != roots_.end()) return found->second;
    const Value& value = program_.value(root);
    const Shape shape = ShapeOf(value);
    if (value.elements() == 0) return text_.Constant(ElementOf(value.dtype), shape, 0);
    argument_of_[root] = static_cast<int>(arguments_.size());
    arguments_.push_back(root);
    return roots_[root] = text_.Argument(ElementOf(value.dtype), shape);
  }

  Tensor Read(ValueId id) {
    int64_t offset = 0;
    const ValueId root = RootOf(program_, id, &offset);
    const Tensor whole = Root(root);
    const Shape shape = ShapeOf(program_.value(id));
    if (root == id || whole.shape == shape) return whole;
    const Tensor flat = text_.Reshape(whole, {ElementsOf(whole.shape)});
    return text_.Reshape(text_.Slice(flat, 0, offset, offset + ElementsOf(shape)), shape);
  }

  void Write(ValueId id, const Tensor& tensor) {
    int64_t offset = 0;
    const ValueId root = RootOf(program_, id, &offset);
    const Value& value = program_.value(root);
    if (program_.value(id).elements() == 0) return;
    written_.insert(root);
    const Shape shape = ShapeOf(value);
    if (program_.value(id).elements() == value.elements()) {
      roots_[root] = text_.Reshape(tensor, shape);
      return;
    }
    const Tensor flat = text_.Reshape(Root(root), {value.elements()});
    const Tensor part = text_.Reshape(tensor, {ElementsOf(tensor.shape)});
    roots_[root] = text_.Reshape(text_.Update(flat, part, offset), shape);
  }

  // The argument is made when the first operation asks; Finish puts it last.
  Tensor FirstMicrobatch() {
    if (!first_.has_value()) first_ = text_.LastArgument(Element::kI32, {});
    return text_.Compare("NE", *first_, 0);
  }

  const Program& program_;
  Function text_;
  std::map<ValueId, Tensor> roots_;
  std::set<ValueId> written_;
  std::map<ValueId, int> argument_of_;
  std::vector<ValueId> arguments_;
  std::optional<Tensor> first_;
};

// The roots that operations [begin, end) of the range's list use.
std::set<ValueId> RootsUsed(const Program& program, const std::vector<Op>& ops, size_t begin,
                            size_t end) {
  std::set<ValueId> roots;
  for (size_t i = begin; i < end; ++i) {
    ForEachValue(program, ops[i], [&](ValueId id) {
      int64_t offset = 0;
      roots.insert(RootOf(program, id, &offset));
    });
  }
  return roots;
}

bool IsTemporary(const model::MemoryPlan& plan, ValueId root) {
  return plan.locations[root].region == model::Region::kTemporary;
}

}  // namespace

StatusOr<SegmentText> WriteSegment(const Program& program, const model::MemoryPlan& plan,
                                   const OpRange& range) {
  Writer writer(program);
  for (size_t i = range.begin; i < range.end; ++i) {
    if (range.evaluate && range.ops[i].gradient_in_forward) continue;
    TROUPE_RETURN_IF_ERROR(writer.Lower(range.ops[i]));
  }
  const std::set<ValueId> later = RootsUsed(program, range.ops, range.end, range.ops.size());
  return writer.Finish(
      [&](ValueId root) { return !IsTemporary(plan, root) || later.contains(root); });
}

std::vector<ValueId> DeadAfter(const Program& program, const model::MemoryPlan& plan,
                               const OpRange& range) {
  const std::set<ValueId> later = RootsUsed(program, range.ops, range.end, range.ops.size());
  std::vector<ValueId> dead;
  for (const ValueId root : RootsUsed(program, range.ops, range.begin, range.end)) {
    if (IsTemporary(plan, root) && !later.contains(root)) dead.push_back(root);
  }
  return dead;
}

}  // namespace troupe::kernels::xla
