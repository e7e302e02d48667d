// Writes operations as the ranks of a slice have them into one text. Roots (values that are no
// views) are its storage: each is the tensor last assigned to it, or an argument.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_WRITER_H_
#define TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_WRITER_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/status.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "kernels/xla/runtime/segment_text.h"
#include "kernels/xla/runtime/stage_programs.h"
#include "kernels/xla/text/function.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

// Not thread-safe; several writers may use one stage at once. Has no effect outside of itself.
// Errors: UNIMPLEMENTED, which names the operation, if it is not lowered; the text is then of no
// use.
class SegmentWriter : private Ranks {
 public:
  // Both must outlive this object.
  SegmentWriter(const StagePrograms& stage, const ValueUse& values);

  // States roots that have no contents yet: they begin as zeros, not as arguments. Call it before
  // the first operation is lowered.
  void BeginEmpty(std::set<model::ValueId> roots) { empty_ = std::move(roots); }

  // Makes those of the `used` roots that are converted from their parameters. Call it before the
  // first operation is lowered.
  void ConvertCopies(const std::set<model::ValueId>& used);
  Status Lower(const StageOp& op);
  // Lowers these all-gathers as one (small_gathers.h).
  Status LowerTogether(const std::vector<const StageOp*>& gathers);
  // Results are the roots that were written and that `is_result` wants. One that was not read and
  // whose memory exists before the run, which `is_kept` states, takes over this memory.
  SegmentText Finish(const std::function<bool(model::ValueId)>& is_result,
                     const std::function<bool(model::ValueId)>& is_kept);

 private:
  // The functions with which one rank reads and writes values.
  struct Access {
    std::function<Tensor(model::ValueId)> read;
    std::function<void(model::ValueId, const Tensor&)> write;
  };
  // A text that some ranks have in common.
  struct Variant {
    Function::Branch branch;
    std::map<model::ValueId, Tensor> written;  // roots
    bool operator==(const Variant& other) const;
  };

  const std::vector<Lowering>& lowerings() const override { return lowerings_; }
  std::vector<Tensor> Each(
      const std::function<std::vector<Tensor>(const Lowering&)>& body) override;
  Tensor Number(Element element, const std::function<double(int partition)>& of) override;
  Tensor ReadPadded(model::ValueId value) override;
  void WritePadded(model::ValueId value, const Tensor& tensor) override;

  // From now on `op` is the operation that is written.
  void BeginOperation(const StageOp& op);
  Variant VariantOf(const Lowering& rank,
                    const std::function<std::vector<Tensor>(const Lowering&)>& body);
  std::vector<Tensor> Choose(std::vector<Variant> variants, const std::vector<double>& of_rank);

  // The present contents of a root, as it is stored; and new ones.
  Tensor Root(model::ValueId root);
  Tensor AddArgument(model::ValueId root);
  void SetRoot(model::ValueId root, const Tensor& tensor);
  // Those of any value as a rank has it.
  Tensor Read(const model::Program& program, model::ValueId id);
  void Write(const model::Program& program, model::ValueId id, const Tensor& tensor);
  // The index at which a view begins in its root, in units of `unit` elements.
  Tensor Begin(model::ValueId id, int64_t unit);
  // Whether the view is whole rows of its root, as all ranks have it.
  bool IsOfRows(model::ValueId id) const;
  Tensor FirstMicrobatch();

  const StagePrograms& stage_;
  const ValueUse& values_;
  Function text_;
  std::vector<Access> accesses_;  // by partition
  std::function<Tensor()> first_microbatch_;
  std::vector<Lowering> lowerings_;  // the operation that is being written
  std::map<model::ValueId, Tensor> roots_;
  std::map<model::ValueId, Tensor>* changed_ = nullptr;  // by the variant that is being written
  std::set<model::ValueId> written_, empty_;
  std::map<model::ValueId, int> argument_of_;
  std::vector<model::ValueId> arguments_;
  std::optional<Tensor> first_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_SEGMENT_WRITER_H_
