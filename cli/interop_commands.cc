// The commands checkpoints import and checkpoints export.
#include <fmt/format.h>

#include "base/file_system.h"
#include "base/program/program.h"
#include "cli/checkpoint_folder.h"
#include "cli/commands.h"
#include "cli/output/json_text.h"
#include "interop/export.h"
#include "interop/import.h"
#include "interop/number_format.h"

namespace troupe {
namespace {

constexpr TextFlag kImportToFlag{"--to", "PATH",
                                 "a new directory, which checkpoint.initial_load can name", true};
constexpr TextFlag kExportToFlag{"--to", "HF_DIR", "a new directory", true};
constexpr NumberFlag<int64_t> kMaxShardBytesFlag{
    {"--max-shard-bytes", "BYTES",
     "largest total of the tensors of one file; more tensors give several files and an index "
     "(default: 5 GiB)"},
    {1, int64_t{1} << 60}};

// The help text names the formats that an export can write.
const TextFlag& DtypeFlag() {
  static const std::string& help =
      *new std::string(fmt::format("{} (default: the imported dtype, else {})", FormatNames(" or "),
                                   NameOf(ExportResult().format)));
  static const TextFlag kFlag{"--dtype", "DTYPE", help.c_str()};
  return kFlag;
}

StatusOr<ExitCode> Import(const CommandLine& line) {
  const std::string& path = *line.Get(kImportToFlag);
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const ImportResult result,
                          ImportHfModel(files, line.positional()[0], path));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"path", path},
                              {"tensors", result.tensors},
                              {"dtype", result.model.export_dtype()},
                              {"bytes", result.bytes},
                              {"digest", result.digest}}));
  } else {
    PrintOutput("{}: {} tensors of {}, {} bytes as float32, {}\n", path, result.tensors,
                result.model.export_dtype(), result.bytes, result.digest);
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Export(const CommandLine& line) {
  const std::string& directory = *line.Get(kExportToFlag);
  ExportOptions options;
  if (const auto& name = line.Get(DtypeFlag())) {
    const auto format = FormatOfName(*name);
    if (!format.ok()) return Annotate(format.status(), DtypeFlag().name);
    options.format = *format;
  }
  options.file_bytes_max = line.Get(kMaxShardBytesFlag).value_or(options.file_bytes_max);
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(CheckCheckpointFolder(files, line.positional()[0]));
  TROUPE_ASSIGN_OR_RETURN(const ExportResult result,
                          ExportHfModel(files, line.positional()[0], directory, options));
  const std::string dtype(NameOf(result.format));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"path", directory},
                              {"tensors", result.tensors},
                              {"dtype", dtype},
                              {"files", result.files},
                              {"bytes", result.bytes}}));
  } else {
    PrintOutput("{}: {} tensors of {} in {} file{}, {} bytes\n", directory, result.tensors, dtype,
                result.files, result.files == 1 ? "" : "s", result.bytes);
  }
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> InteropCommands() {
  return {
      {.name = "checkpoints import",
       .positionals = "HF_DIR",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Converts a Hugging Face directory of the Llama family to a checkpoint.",
       .flags = {&kImportToFlag},
       .cluster = ClusterUse::kNone,
       .run = Import},
      {.name = "checkpoints export",
       .positionals = "PATH",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Writes a checkpoint's weights as a Hugging Face directory.",
       .flags = {&kExportToFlag, &DtypeFlag(), &kMaxShardBytesFlag},
       .cluster = ClusterUse::kNone,
       .run = Export},
  };
}

}  // namespace troupe
