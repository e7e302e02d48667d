// The commands checkpoints import and checkpoints export.
#include <fmt/format.h>
#include <unistd.h>

#include "base/file_system.h"
#include "base/program/program.h"
#include "cli/checkpoint_folder.h"
#include "cli/commands.h"
#include "cli/output/checkpoint_text.h"
#include "cli/output/relative_path.h"
#include "cli/output/text_style.h"
#include "interop/export.h"
#include "interop/import.h"
#include "interop/number_format.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr TextFlag kImportToFlag{"--to", "PATH",
                                 "a new directory, which checkpoint.initial_load can name", true};
constexpr TextFlag kExportToFlag{"--to", "HF_DIR", "a new directory", true};
constexpr NumberFlag<int64_t> kMaxShardBytesFlag{
    {"--max-shard-bytes", "BYTES",
     "largest total of the tensors of one file; more tensors give several files and an index "
     "(default: 5368709120, which is 5.37 GB)"},
    {1, int64_t{1} << 60}};

constexpr TextFlag kTokenizerDirFlag{
    "--tokenizer", "DIR",
    "a Hugging Face directory whose tokenizer, chat template and generation_config.json are copied "
    "(default: the job's model.from, if this host has it)"};

// The help text names the formats that an export can write.
const TextFlag& DtypeFlag() {
  static const std::string& help =
      *new std::string(fmt::format("{} (default: the imported dtype, else {})", FormatNames(" or "),
                                   NameOf(ExportResult().format)));
  static const std::string& words = *new std::string(FormatNames(" "));
  static const TextFlag kFlag{"--dtype", "DTYPE", help.c_str(), false, words.c_str()};
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
    WriteOutput(ImportText(path, result, TextStyleFromHere(STDOUT_FILENO)));
  }
  return ExitCode::kDone;
}

void PrintExport(const CommandLine& line, const std::string& directory,
                 const ExportResult& result) {
  if (line.wants_json()) {
    const TokenizerFiles& copied = result.tokenizer;
    const Json from = copied.names.empty() ? Json(nullptr) : Json(copied.directory);
    PrintOutput("{}\n", Dump({{"path", directory},
                              {"tensors", result.tensors},
                              {"dtype", std::string(NameOf(result.format))},
                              {"files", result.files},
                              {"bytes", result.bytes},
                              {"tokenizer_files", copied.names},
                              {"tokenizer_from", from}}));
  } else {
    WriteOutput(ExportText(directory, result, TextStyleFromHere(STDOUT_FILENO)));
  }
  FlushOutput();
  if (!result.no_tokenizer.empty()) {
    PrintMessage("{} has no tokenizer: {}; --tokenizer DIR copies one\n", PathFromHere(directory),
                 WithRelativePaths(result.no_tokenizer, WorkingDirectoryOrNone()));
  }
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
  options.tokenizer_directory = line.Get(kTokenizerDirFlag);
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string path,
                          CheckpointFinder(files, line).Find(line.positional()[0]));
  TROUPE_ASSIGN_OR_RETURN(const ExportResult result,
                          ExportHfModel(files, path, directory, options));
  PrintExport(line, directory, result);
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
       .positionals = "PATH|JOB[@STEP]",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Writes a checkpoint's weights as a Hugging Face directory, with the tokenizer.",
       .flags = {&kExportToFlag, &DtypeFlag(), &kMaxShardBytesFlag, &kTokenizerDirFlag},
       .run = Export},
  };
}

}  // namespace troupe
