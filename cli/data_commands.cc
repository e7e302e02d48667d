// The commands data prepare and data show.
#include <fmt/format.h>

#include <limits>

#include "base/file_system.h"
#include "cli/commands.h"
#include "cli/job_input.h"
#include "cli/json_text.h"
#include "data/prepare.h"
#include "plan/job/job_defaults.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

StatusOr<ExitCode> Prepare(const CommandLine& line) {
  PrepareOptions options{.output_prefix = line.GetOr("--output", ""),
                         .tokenizer = line.GetOr("--tokenizer", "bytes"),
                         .paths = line.positional()};
  if (line.Has("--eod-id")) {
    TROUPE_ASSIGN_OR_RETURN(options.end_of_document,
                            line.Integer("--eod-id", 0, 0, std::numeric_limits<int32_t>::max()));
  }
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const PrepareResult result, PrepareDataset(files, options));
  const int64_t skipped = result.skipped_binary + result.skipped_unreadable + result.skipped_empty +
                          result.skipped_links + result.skipped_special;
  if (skipped > 0) {
    fmt::print(stderr,
               "skipped: {} binary, {} unreadable, {} empty, {} symbolic links, {} special\n",
               result.skipped_binary, result.skipped_unreadable, result.skipped_empty,
               result.skipped_links, result.skipped_special);
  }
  if (result.replaced_parts > 0) {
    fmt::print(stderr, "not UTF-8: {} byte sequences of {} documents became U+FFFD\n",
               result.replaced_parts, result.replaced_documents);
  }
  if (line.wants_json()) {
    fmt::print("{}\n", Dump({{"documents", result.documents},
                             {"tokens", result.tokens},
                             {"files", result.files},
                             {"vocab_size", result.vocab_size},
                             {"end_of_document", result.end_of_document},
                             {"replaced", result.replaced_parts}}));
  } else {
    fmt::print("{} documents, {} tokens; token ids are below {}, and {} ends a document\n",
               result.documents, result.tokens, result.vocab_size, result.end_of_document);
    for (const auto& file : result.files) fmt::print("{}\n", file);
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> ShowData(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, LoadJob(line));
  TROUPE_ASSIGN_OR_RETURN(const int64_t step, line.Integer("--step", 1, 1, int64_t{1} << 40));
  // The name does not affect the samples, so any name will do.
  if (!spec.has_name()) spec.set_name("data");
  ApplyDefaults(&spec);
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(spec, JobPurpose::kTrain));
  TROUPE_ASSIGN_OR_RETURN(const Dataset dataset, OpenData(spec));
  const size_t length = static_cast<size_t>(spec.training().sequence_length());
  std::vector<int32_t> tokens(length), targets(length), positions(length), documents(length);
  std::vector<float> weights(length);
  SampleRow row;
  row.Add(channels::kTokens, tokens);
  row.Add(channels::kTargets, targets);
  if (spec.data().document_mask()) {
    row.Add(channels::kWeights, weights);
    row.Add(channels::kPositions, positions);
    row.Add(channels::kDocuments, documents);
  }
  Json samples = Json::array();
  for (int64_t slot = 0; slot < spec.training().global_batch_size(); ++slot) {
    TROUPE_RETURN_IF_ERROR(dataset.Train(step, slot, row));
    const Dataset::Origin origin = dataset.OriginOf(step, slot);
    const std::string& path = dataset.path(origin.dataset);
    if (line.wants_json()) {
      Json sample = {{"slot", slot},    {"tokens", tokens},      {"targets", targets},
                     {"dataset", path}, {"epoch", origin.epoch}, {"row", origin.row}};
      if (spec.data().document_mask()) {
        sample["weights"] = weights;
        sample["positions"] = positions;
        sample["documents"] = documents;
      }
      samples.push_back(std::move(sample));
    } else {
      fmt::print("slot {} ({} epoch {} row {}): {} -> {}\n", slot, path, origin.epoch, origin.row,
                 fmt::join(tokens, " "), targets.back());
    }
  }
  if (line.wants_json())
    fmt::print("{}\n", Dump({{"step", step}, {"samples", std::move(samples)}}));
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> DataCommands() {
  return {
      {.name = "data prepare",
       .positionals = "PATH…",
       .least_positionals = 1,
       .most_positionals = 1 << 20,
       .summary = "Tokenizes text files and folders into Megatron's indexed format.",
       .flags = {{.name = "--output",
                  .value = "PREFIX",
                  .help = "writes PREFIX.bin and PREFIX.idx",
                  .required = true},
                 {"--tokenizer", "NAME",
                  "bytes: ids 0-255, and 256 ends a document; or PATH/tokenizer.json: byte-level "
                  "BPE as in GPT-2 and Llama 3 (default: bytes)"},
                 {"--eod-id", "ID",
                  "token that ends a document (default: eos_token of the tokenizer_config.json "
                  "next to the tokenizer.json, <|endoftext|> or <|end_of_text|>)"}},
       .cluster = ClusterUse::kNone,
       .run = Prepare},
      {.name = "data show",
       .positionals = "JOB.yaml",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Prints exactly the samples that training reads at a step.",
       .flags = {{.name = "--step", .value = "STEP", .help = "step, from 1", .required = true},
                 {"--set", "KEY=VALUE", "sets any key of the job file; the value is YAML", true}},
       .cluster = ClusterUse::kNone,
       .run = ShowData}};
}

}  // namespace troupe
