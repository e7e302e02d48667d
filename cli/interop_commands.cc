// The commands checkpoints import and checkpoints export.
#include <fmt/format.h>

#include "base/file_system.h"
#include "cli/commands.h"
#include "cli/json_text.h"
#include "interop/export.h"
#include "interop/import.h"

namespace troupe {
namespace {

StatusOr<ExitCode> Import(const CommandLine& line) {
  const auto path = line.Get("--to");
  if (!path.has_value()) return InvalidArgument("--to PATH is required");
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const ImportResult result,
                          ImportHfModel(files, line.positional()[0], *path));
  if (line.wants_json()) {
    fmt::print("{}\n", Dump({{"path", *path},
                             {"tensors", result.tensors},
                             {"dtype", result.model.export_dtype()},
                             {"bytes", result.bytes},
                             {"digest", result.digest}}));
  } else {
    fmt::print("{}: {} tensors of {}, {} bytes as float32, {}\n", *path, result.tensors,
               result.model.export_dtype(), result.bytes, result.digest);
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Export(const CommandLine& line) {
  const auto directory = line.Get("--to");
  if (!directory.has_value()) return InvalidArgument("--to HF_DIR is required");
  ExportOptions options;
  if (const auto name = line.Get("--dtype")) {
    const auto format = FormatOfName(*name);
    if (!format.ok()) return Annotate(format.status(), "--dtype");
    options.format = *format;
  }
  TROUPE_ASSIGN_OR_RETURN(
      options.file_bytes_max,
      line.Integer("--max-shard-bytes", options.file_bytes_max, 1, int64_t{1} << 60));
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const ExportResult result,
                          ExportHfModel(files, line.positional()[0], *directory, options));
  const std::string dtype(NameOf(result.format));
  if (line.wants_json()) {
    fmt::print("{}\n", Dump({{"path", *directory},
                             {"tensors", result.tensors},
                             {"dtype", dtype},
                             {"files", result.files},
                             {"bytes", result.bytes}}));
  } else {
    fmt::print("{}: {} tensors of {} in {} file{}, {} bytes\n", *directory, result.tensors, dtype,
               result.files, result.files == 1 ? "" : "s", result.bytes);
  }
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> InteropCommands() {
  return {{.name = "checkpoints import",
           .positionals = "HF_DIR",
           .least_positionals = 1,
           .most_positionals = 1,
           .summary = "Converts a Hugging Face directory of the Llama family to a checkpoint.",
           .flags = {{"--to", "PATH",
                      "a new directory, which checkpoint.initial_load can name; required"}},
           .run = Import},
          {.name = "checkpoints export",
           .positionals = "PATH",
           .least_positionals = 1,
           .most_positionals = 1,
           .summary = "Writes a checkpoint's weights as a Hugging Face directory.",
           .flags = {{"--to", "HF_DIR", "a new directory; required"},
                     {"--dtype", "DTYPE",
                      "float32, bfloat16 or float16 (default: the imported dtype, else float32)"},
                     {"--max-shard-bytes", "BYTES",
                      "largest total of the tensors of one file; more tensors give several files "
                      "and an index (default: 5 GiB)"}},
           .run = Export}};
}

}  // namespace troupe
