#include "kernels/xla/runtime/segment_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/xla/ops/lower.h"
#include "kernels/xla/ops/slice_group.h"

namespace troupe::kernels::xla {

using model::Op;
using model::Program;
using model::Value;
using model::ValueId;

SegmentWriter::SegmentWriter(const StagePrograms& stage, const ValueUse& values)
    : stage_(stage), values_(values), first_microbatch_([this] { return FirstMicrobatch(); }) {
  for (int p = 0; p < stage.ranks(); ++p) {
    const Program& program = stage.program(p);
    accesses_.push_back({[this, &program](ValueId id) { return Read(program, id); },
                         [this, &program](ValueId id, const Tensor& x) { Write(program, id, x); }});
  }
}

void SegmentWriter::BeginOperation(const StageOp& op) {
  const Op& any = op.any();
  lowerings_.clear();
  lowerings_.reserve(op.of_rank.size());
  for (size_t p = 0; p < op.of_rank.size(); ++p) {
    const Op* const of_rank = op.of_rank[p];
    lowerings_.push_back({stage_.program(static_cast<int>(p)), of_rank == nullptr ? any : *of_rank,
                          of_rank != nullptr, text_, accesses_[p].read, accesses_[p].write,
                          first_microbatch_, values_.only_microbatch, *this});
  }
}

Status SegmentWriter::Lower(const StageOp& op) {
  BeginOperation(op);
  return Annotate(xla::Lower(*this), OperationName(stage_.program(0), op.any()));
}

// The blocks of a rank are one row of the tensor that is sent.
Status SegmentWriter::LowerTogether(const std::vector<const StageOp*>& gathers) {
  std::vector<Tensor> blocks;
  for (const StageOp* const op : gathers) {
    BeginOperation(*op);
    const Tensor block = EachOne([](const Lowering& rank) { return rank.In(0); });
    blocks.push_back(text_.Reshape(block, {1, ElementsOf(block.shape)}));
  }
  const Tensor all = text_.AllGather(text_.Concatenate(blocks, 1), PartitionGroups(lowerings_[0]));
  int64_t begin = 0;
  for (size_t i = 0; i < gathers.size(); ++i) {
    BeginOperation(*gathers[i]);
    const int64_t end = begin + blocks[i].shape[1];
    const Tensor whole = text_.Slice(all, 1, begin, end);
    EachWrites(
        [&](const Lowering& rank) { rank.Out(0, text_.Reshape(whole, ShapeOf(rank.Output(0)))); });
    begin = end;
  }
  return OkStatus();
}

SegmentText SegmentWriter::Finish(const std::function<bool(ValueId)>& is_result,
                                  const std::function<bool(ValueId)>& is_kept) {
  SegmentText segment;
  segment.first_unread = arguments_.size();
  std::vector<Tensor> results;
  for (const auto& [root, tensor] : roots_) {
    if (!written_.contains(root) || !is_result(root) || values_.converted.contains(root)) continue;
    if (!argument_of_.contains(root) && is_kept(root)) AddArgument(root);
    const auto argument = argument_of_.find(root);
    segment.results.push_back(root);
    segment.aliases.push_back(argument == argument_of_.end() ? -1 : argument->second);
    results.push_back(tensor);
  }
  segment.arguments = std::move(arguments_);
  segment.reads_first_microbatch = first_.has_value();
  if (results.empty()) return segment;
  segment.module = stage_.ranks() == 1
                       ? text_.Module(results, segment.aliases)
                       : text_.SliceModule(results, segment.aliases, stage_.ranks());
  return segment;
}

bool SegmentWriter::Variant::operator==(const Variant& other) const {
  return branch.part == other.branch.part && branch.results == other.branch.results &&
         written == other.written;
}

SegmentWriter::Variant SegmentWriter::VariantOf(
    const Lowering& rank, const std::function<std::vector<Tensor>(const Lowering&)>& body) {
  TROUPE_CHECK(changed_ == nullptr, "parts of an operation are not nested");
  Variant variant;
  std::map<ValueId, Tensor> changed;  // root → what it was before
  changed_ = &changed;
  variant.branch.part = text_.Capture([&] { variant.branch.results = body(rank); });
  changed_ = nullptr;
  for (const auto& [root, before] : changed) {
    const auto found = roots_.find(root);
    variant.written[root] = found->second;
    if (before.name.empty()) {
      roots_.erase(found);
    } else {
      found->second = before;
    }
  }
  return variant;
}

std::vector<Tensor> SegmentWriter::Each(
    const std::function<std::vector<Tensor>(const Lowering&)>& body) {
  std::vector<Variant> variants;
  std::vector<double> of_rank;
  for (const Lowering& rank : lowerings_) {
    Variant variant = VariantOf(rank, body);
    const auto found = std::ranges::find(variants, variant);
    of_rank.push_back(static_cast<double>(found - variants.begin()));
    if (found == variants.end()) variants.push_back(std::move(variant));
  }
  if (variants.size() > 1) return Choose(std::move(variants), of_rank);
  text_.Insert(variants[0].branch.part);
  for (const auto& [root, tensor] : variants[0].written) SetRoot(root, tensor);
  return variants[0].branch.results;
}

// A branch that does not write a root returns what it was.
std::vector<Tensor> SegmentWriter::Choose(std::vector<Variant> variants,
                                          const std::vector<double>& of_rank) {
  std::set<ValueId> written;
  for (const Variant& variant : variants) {
    for (const auto& [root, tensor] : variant.written) written.insert(root);
  }
  std::vector<Function::Branch> branches;
  const size_t results = variants[0].branch.results.size();
  // StableHLO has no choice without a result.
  if (results == 0 && written.empty()) return {};
  for (Variant& variant : variants) {
    text_.Reserve(variant.branch.part);
    for (const ValueId root : written) {
      const auto found = variant.written.find(root);
      variant.branch.results.push_back(found == variant.written.end() ? Root(root) : found->second);
    }
    branches.push_back(std::move(variant.branch));
  }
  const Tensor index = Number(Element::kI32, [&](int partition) { return of_rank[partition]; });
  std::vector<Tensor> chosen = text_.Case(index, branches);
  size_t next = results;
  for (const ValueId root : written) SetRoot(root, chosen[next++]);
  chosen.resize(results);
  return chosen;
}

Tensor SegmentWriter::Number(Element element, const std::function<double(int partition)>& of) {
  std::vector<double> numbers;
  for (int p = 0; p < stage_.ranks(); ++p) numbers.push_back(of(p));
  if (std::ranges::count(numbers, numbers[0]) == std::ssize(numbers))
    return text_.Constant(element, {}, numbers[0]);
  return text_.Reshape(text_.SliceAt(text_.Vector(element, numbers), text_.PartitionId(), 1), {});
}

Tensor SegmentWriter::Root(ValueId root) {
  const auto found = roots_.find(root);
  if (found != roots_.end()) return found->second;
  const Shape shape = stage_.StorageShape(root);
  const Element element = ElementOf(stage_.program(0).value(root).dtype);
  if (ElementsOf(shape) == 0) return text_.Constant(element, shape, 0);
  if (!empty_.contains(root)) return roots_[root] = AddArgument(root);
  const Tensor zeros = text_.Constant(element, shape, 0);
  // A part of an operation is text of its own, which others do not see.
  if (changed_ == nullptr) roots_[root] = zeros;
  return zeros;
}

void SegmentWriter::ConvertCopies(const std::set<ValueId>& used) {
  for (const auto& [copy, parameter] : values_.converted) {
    if (!used.contains(copy) || ElementsOf(stage_.StorageShape(copy)) == 0) continue;
    const Element element = ElementOf(stage_.program(0).value(copy).dtype);
    roots_[copy] = text_.Convert(Root(parameter), element);
  }
}

Tensor SegmentWriter::AddArgument(ValueId root) {
  argument_of_[root] = static_cast<int>(arguments_.size());
  arguments_.push_back(root);
  return text_.Argument(ElementOf(stage_.program(0).value(root).dtype), stage_.StorageShape(root));
}

void SegmentWriter::SetRoot(ValueId root, const Tensor& tensor) {
  // An operation in place that changes nothing, such as a sum over one rank.
  if (const auto now = roots_.find(root); now != roots_.end() && now->second.name == tensor.name)
    return;
  if (changed_ != nullptr) {
    changed_->try_emplace(root, roots_[root]);
  } else {
    written_.insert(root);
  }
  roots_[root] = tensor;
}

bool SegmentWriter::IsOfRows(ValueId id) const {
  for (int p = 0; p < stage_.ranks(); ++p) {
    const Program& program = stage_.program(p);
    int64_t offset = 0;
    const Value& root = program.value(RootOf(program, id, &offset));
    const Value& view = program.value(id);
    if (view.dims.size() != root.dims.size() || view.row_elements() != root.row_elements())
      return false;
    for (size_t d = 1; d < view.dims.size(); ++d) {
      if (view.dims[d].local != root.dims[d].local) return false;
    }
    if (view.row_elements() == 0 || offset % view.row_elements() != 0) return false;
  }
  return true;
}

Tensor SegmentWriter::Begin(ValueId id, int64_t unit) {
  return Number(Element::kI32, [&](int partition) {
    int64_t offset = 0;
    RootOf(stage_.program(partition), id, &offset);
    const int64_t begin = offset / unit;
    return static_cast<double>(begin);
  });
}

Tensor SegmentWriter::Read(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  const Shape shape = ShapeOf(value);
  if (value.elements() == 0) return text_.Constant(ElementOf(value.dtype), shape, 0);
  int64_t offset = 0;
  const ValueId root = RootOf(program, id, &offset);
  const Tensor whole = text_.CutTo(Root(root), ShapeOf(program.value(root)));
  if (whole.shape == shape) return whole;
  const int64_t elements = value.elements();
  if (elements == ElementsOf(whole.shape)) return text_.Reshape(whole, shape);
  if (IsOfRows(id)) return text_.SliceAt(whole, Begin(id, value.row_elements()), shape[0]);
  const Tensor flat = text_.Reshape(whole, {ElementsOf(whole.shape)});
  return text_.Reshape(text_.SliceAt(flat, Begin(id, 1), elements), shape);
}

void SegmentWriter::Write(const Program& program, ValueId id, const Tensor& tensor) {
  const Value& value = program.value(id);
  if (value.elements() == 0) return;
  int64_t offset = 0;
  const ValueId root = RootOf(program, id, &offset);
  const Shape stored = stage_.StorageShape(root), shape = ShapeOf(program.value(root));
  if (value.elements() == ElementsOf(shape))
    return SetRoot(root, text_.PadTo(text_.Reshape(tensor, shape), stored));
  const Tensor whole = text_.CutTo(Root(root), shape);
  Tensor updated;
  if (IsOfRows(id)) {
    updated = text_.UpdateAt(whole, tensor, Begin(id, value.row_elements()));
  } else {
    const Tensor flat = text_.Reshape(whole, {ElementsOf(shape)});
    const Tensor part = text_.Reshape(tensor, {value.elements()});
    updated = text_.Reshape(text_.UpdateAt(flat, part, Begin(id, 1)), shape);
  }
  SetRoot(root, text_.PadTo(updated, stored));
}

Tensor SegmentWriter::ReadPadded(ValueId value) {
  const Shape shape = stage_.StorageShape(value);
  int64_t offset = 0;
  const ValueId root = RootOf(stage_.program(0), value, &offset);
  if (stage_.StorageShape(root) == shape) return Root(root);
  return EachOne([&](const Lowering& rank) { return text_.PadTo(rank.read(value), shape); });
}

void SegmentWriter::WritePadded(ValueId value, const Tensor& tensor) {
  int64_t offset = 0;
  const ValueId root = RootOf(stage_.program(0), value, &offset);
  if (stage_.StorageShape(root) == tensor.shape) return SetRoot(root, tensor);
  EachWrites([&](const Lowering& rank) {
    rank.write(value, text_.CutTo(tensor, ShapeOf(rank.program.value(value))));
  });
}

// The argument is made when the first operation asks; Finish puts it last.
Tensor SegmentWriter::FirstMicrobatch() {
  if (!first_.has_value()) first_ = text_.LastArgument(Element::kI32, {});
  return text_.Compare("NE", *first_, 0);
}

}  // namespace troupe::kernels::xla
