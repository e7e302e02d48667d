#include "kernels/cpu/experts/routed_rows.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/cpu/all_reduce.h"

namespace troupe::kernels::cpu {
namespace {

class RoutedRows : public Instruction {
 protected:
  RoutedRows(const RoutedRowsArgs& args, Communicator* communicator)
      : args_(args),
        communicator_(communicator),
        sizes_(communicator != nullptr ? communicator->size() : 1) {}

  // The sizes of each rank's rows, in elements times `unit`.
  std::span<const size_t> Sizes(size_t unit) {
    const int64_t each = args_.num_counts / static_cast<int64_t>(sizes_.size());
    const int32_t* count = args_.counts;
    for (size_t& size : sizes_) {
      int64_t rows = 0;
      for (int64_t c = 0; c < each; ++c) rows += *count++;
      size = static_cast<size_t>(rows * args_.row_elements) * unit;
    }
    return sizes_;
  }

  const RoutedRowsArgs args_;
  Communicator* const communicator_;

 private:
  std::vector<size_t> sizes_;
};

class GatherRouted : public RoutedRows {
 public:
  GatherRouted(const RoutedRowsArgs& args, Communicator* communicator)
      : RoutedRows(args, communicator) {}

  Status Run(const RunOptions&) override {
    const std::span<const size_t> bytes = Sizes(static_cast<size_t>(SizeOf(args_.dtype)));
    if (communicator_ == nullptr) {
      std::memcpy(args_.output, args_.input, bytes[0]);
      return OkStatus();
    }
    return communicator_->AllGather(args_.input, args_.output, bytes, args_.purpose);
  }
};

class ScatterRouted : public RoutedRows {
 public:
  ScatterRouted(const RoutedRowsArgs& args, const Reduction& sum, Communicator* communicator)
      : RoutedRows(args, communicator), sum_(sum) {}

  Status Run(const RunOptions&) override {
    const std::span<const size_t> elements = Sizes(1);
    const size_t bytes = std::accumulate(elements.begin(), elements.end(), size_t{0}) *
                         static_cast<size_t>(SizeOf(args_.dtype));
    if (communicator_ == nullptr) {
      std::memcpy(args_.output, args_.input, bytes);
      return OkStatus();
    }
    char* data = args_.input;
    if (args_.copy != nullptr) {
      std::memcpy(args_.copy, args_.input, bytes);
      data = args_.copy;
    }
    return communicator_->ReduceScatter(data, args_.output, elements, sum_, args_.purpose);
  }

 private:
  const Reduction sum_;
};

}  // namespace

std::unique_ptr<Instruction> MakeGatherRouted(const RoutedRowsArgs& args,
                                              Communicator* communicator) {
  return std::make_unique<GatherRouted>(args, communicator);
}

StatusOr<std::unique_ptr<Instruction>> MakeScatterRouted(const RoutedRowsArgs& args,
                                                         Communicator* communicator) {
  const std::optional<Reduction> sum = ReductionOf(args.dtype, model::ReduceKind::kSum);
  if (!sum) return InvalidArgument("sums of {} are not supported", model::Name(args.dtype));
  return std::make_unique<ScatterRouted>(args, *sum, communicator);
}

}  // namespace troupe::kernels::cpu
