#include "cli/output/checkpoint_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/count_text.h"
#include "base/text/display_width.h"
#include "base/text/printable.h"
#include "base/text/scaled.h"
#include "base/text/wrapped.h"
#include "cli/output/relative_path.h"
#include "cli/output/table.h"
#include "interop/number_format.h"

namespace troupe {
namespace {

constexpr size_t kLeastFileDigestColumns = 14;

std::string SizeOfFiles(int64_t bytes) { return Scaled(static_cast<double>(bytes), "B"); }

// Returns by how much the tensor differs, or why it cannot be compared.
std::string ExtentText(const TensorDifference& tensor) {
  if (!tensor.reason.empty()) return tensor.reason;
  std::string text = fmt::format("{} of {} elements differ", tensor.differing, tensor.elements);
  if (tensor.numeric) {
    text += fmt::format(", by at most {:.6g}, relatively {:.3g}", tensor.max_absolute,
                        tensor.max_relative);
  }
  return text;
}

bool FitsInLine(const std::string& name, const std::string& facts, const TextStyle& style) {
  return DisplayColumns(PrintableLine(name + ": " + facts)) <= style.columns;
}

// Returns "name: facts" in one line, or else the facts below the name.
std::string FactsText(const std::string& name, const std::string& facts, bool in_one_line,
                      const TextStyle& style) {
  if (in_one_line) return WrappedLine(name + ": " + facts, style);
  return WrappedLine(name + ":", style) + WrappedBehind("  ", PrintableLine(facts), style.columns) +
         "\n";
}

// The same, with the facts below a path with which they do not fit.
std::string FactsOfPath(const std::string& path, const std::string& facts, const TextStyle& style) {
  const std::string name = RelativePath(path, style.directory);
  return FactsText(name, facts, FitsInLine(name, facts, style), style);
}

}  // namespace

std::string ManifestText(const v1::CheckpointManifest& manifest, const TextStyle& style) {
  constexpr auto kLeft = Table::Align::kLeft, kRight = Table::Align::kRight;
  const v1::TrainingState& state = manifest.state();
  std::string text =
      WrappedLine(fmt::format("job {}, step {}, {} consumed", manifest.job(), state.step(),
                              CountText(state.consumed_samples(), "sample")),
                  style) +
      WrappedLine(fmt::format("attempt {} to write one, in start {} of the ranks",
                              manifest.attempt(), manifest.group_epoch()),
                  style);
  if (manifest.has_base()) {
    text += WrappedLine(fmt::format("its frozen parameters are those of {} {}",
                                    manifest.base().key(), manifest.base().path()),
                        style);
  }
  if (manifest.shards().empty()) return text;
  Table table({{"FILE"},
               {"RANK", kRight},
               {"SIZE", kRight},
               {"DIGEST", kLeft, Table::Narrow::kShortened, kLeastFileDigestColumns, 1}});
  for (const v1::ShardFile& shard : manifest.shards()) {
    table.AddRow({{shard.name()},
                  {fmt::to_string(shard.rank())},
                  {SizeOfFiles(shard.bytes())},
                  {shard.digest()}});
    for (const v1::TensorSlice& tensor : shard.tensors()) {
      table.AddLine(fmt::format("{} {} [{}] at [{}] of [{}]", tensor.name(), tensor.dtype(),
                                fmt::join(tensor.shape(), ","),
                                fmt::join(tensor.global_offset(), ","),
                                fmt::join(tensor.global_shape(), ",")));
    }
  }
  return text + table.Text(style);
}

std::string VerifiedText(const std::string& path, const VerifyReport& report,
                         const TextStyle& style) {
  return FactsOfPath(path,
                     fmt::format("step {}, {}, {}: whole", report.step,
                                 CountText(report.files, "file"), SizeOfFiles(report.bytes)),
                     style);
}

std::string DifferenceText(const CheckpointDifference& difference, int64_t step_a, int64_t step_b,
                           const TextStyle& style) {
  const bool fits = std::ranges::all_of(difference.differing, [&](const TensorDifference& tensor) {
    return FitsInLine(tensor.name, ExtentText(tensor), style);
  });
  std::string text;
  for (const TensorDifference& tensor : difference.differing)
    text += FactsText(tensor.name, ExtentText(tensor), fits, style);
  return text +
         WrappedLine(fmt::format("steps {} and {}: {} with {} compared, {}", step_a, step_b,
                                 CountText(difference.tensors, "tensor"),
                                 CountText(difference.elements, "element"),
                                 difference.empty()
                                     ? "all equal"
                                     : fmt::format("{} differ", difference.differing.size())),
                     style);
}

std::string ImportText(const std::string& path, const ImportResult& result,
                       const TextStyle& style) {
  return FactsOfPath(path,
                     fmt::format("{} of {}, {} as float32", CountText(result.tensors, "tensor"),
                                 result.model.export_dtype(), SizeOfFiles(result.bytes)),
                     style) +
         WrappedLine("digest " + result.digest, style);
}

std::string ExportText(const std::string& directory, const ExportResult& result,
                       const TextStyle& style) {
  std::string text = FactsOfPath(
      directory,
      fmt::format("{} of {} in {}, {}", CountText(result.tensors, "tensor"), NameOf(result.format),
                  CountText(result.files, "file"), SizeOfFiles(result.bytes)),
      style);
  const TokenizerFiles& copied = result.tokenizer;
  if (copied.names.empty()) return text;
  return text + WrappedLine(fmt::format("copied from {}: {}",
                                        RelativePath(copied.directory, style.directory),
                                        fmt::join(copied.names, ", ")),
                            style);
}

}  // namespace troupe
