// The commands data prepare and data show.
#include <fmt/format.h>
#include <unistd.h>

#include <limits>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/program/program.h"
#include "base/text/count_text.h"
#include "cli/commands.h"
#include "cli/job_input.h"
#include "cli/output/prepare_line.h"
#include "cli/output/prepare_text.h"
#include "cli/output/text_style.h"
#include "data/prepare.h"
#include "plan/job/job_defaults.h"
#include "plan/validate/validate.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr TextFlag kOutputFlag{"--output", "PREFIX", "writes PREFIX.bin and PREFIX.idx", true};
constexpr TextFlag kTokenizerFlag{
    "--tokenizer", "FILE",
    "a tokenizer.json: byte-level BPE as in GPT-2 and Llama 3; or bytes: ids 0-255, and 256 ends a "
    "document (default: bytes)"};
constexpr NumberFlag<int64_t> kEodIdFlag{
    {"--eod-id", "ID",
     "token that ends a document (default: eos_token of the tokenizer_config.json next to the "
     "tokenizer.json, <|endoftext|> or <|end_of_text|>)"},
    {0, std::numeric_limits<int32_t>::max()}};
constexpr TextFlag kJsonKeyFlag{
    "--json-key", "KEY",
    "of JSON lines, the string at KEY of each line is a document (default: text, in files *.jsonl, "
    "*.jsonl.gz and *.jsonl.zst; if KEY is stated, in every file of JSON lines)"};
constexpr SwitchFlag kJsonAsTextFlag{"--json-as-text", "",
                                     "makes each file one document as it is, JSON lines too"};
constexpr NumberFlag<int64_t> kStepFlag{{"--step", "STEP", "step, from 1", true},
                                        {1, int64_t{1} << 40}};

void PrintResult(const CommandLine& line, const PrepareResult& result, double seconds) {
  const int64_t skipped = result.skipped_binary + result.skipped_unreadable + result.skipped_empty +
                          result.skipped_links + result.skipped_special;
  if (skipped > 0) {
    PrintMessage("skipped: {} binary, {} unreadable, {} empty, {} symbolic links, {} special\n",
                 result.skipped_binary, result.skipped_unreadable, result.skipped_empty,
                 result.skipped_links, result.skipped_special);
  }
  if (result.replaced_parts > 0) {
    PrintMessage("not UTF-8: {} of {} became U+FFFD\n", CountText(result.replaced_parts, "part"),
                 CountText(result.replaced_documents, "document"));
  }
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"documents", result.documents},
                              {"tokens", result.tokens},
                              {"files", result.files},
                              {"text_bytes", result.text_bytes},
                              {"seconds", seconds},
                              {"tokens_per_second", TokensPerSecond(result, seconds)},
                              {"vocab_size", result.vocab_size},
                              {"end_of_document", result.end_of_document},
                              {"replaced", result.replaced_parts}}));
  } else {
    WriteOutput(PrepareText(result, seconds, TextStyleOf(STDOUT_FILENO)));
  }
}

StatusOr<ExitCode> Prepare(const CommandLine& line) {
  PrepareOptions options{.output_prefix = *line.Get(kOutputFlag),
                         .tokenizer = line.Get(kTokenizerFlag).value_or("bytes"),
                         .end_of_document = line.Get(kEodIdFlag),
                         .paths = line.positional(),
                         .json_key = line.Get(kJsonKeyFlag),
                         .json_as_text = line.Get(kJsonAsTextFlag)};
  if (options.json_key.has_value() && options.json_as_text) {
    return InvalidArgument("--json-key and --json-as-text contradict each other: give one");
  }
  const SystemClock clock;
  PrepareLine progress(clock);
  if (progress.draws()) {
    options.progress = [&](const PrepareProgress& now) { progress.Show(now); };
  }
  PosixFileSystem files;
  const MonotonicTime began = clock.Now();
  TROUPE_ASSIGN_OR_RETURN(const PrepareResult result, PrepareDataset(files, options));
  const double seconds = ToSeconds(clock.Now() - began);
  progress.Clear();
  PrintResult(line, result, seconds);
  return ExitCode::kDone;
}

StatusOr<ExitCode> ShowDataOf(const CommandLine& line, v1::JobSpec spec) {
  const int64_t step = *line.Get(kStepFlag);
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
      PrintOutput("slot {} ({} epoch {} row {}): {} -> {}\n", slot, path, origin.epoch, origin.row,
                  fmt::join(tokens, " "), targets.back());
    }
  }
  if (line.wants_json())
    PrintOutput("{}\n", Dump({{"step", step}, {"samples", std::move(samples)}}));
  return ExitCode::kDone;
}

StatusOr<ExitCode> ShowData(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(LoadedJob job, LoadJob(line));
  return WithPlaces(ShowDataOf(line, std::move(job.spec)), job.places);
}

}  // namespace

std::vector<Command> DataCommands() {
  return {
      {.name = "data prepare",
       .positionals = "PATH…",
       .least_positionals = 1,
       .most_positionals = 1 << 20,
       .summary = "Tokenizes text files, JSON lines and folders into Megatron's indexed format.",
       .flags = {&kOutputFlag, &kTokenizerFlag, &kEodIdFlag, &kJsonKeyFlag, &kJsonAsTextFlag},
       .cluster = ClusterUse::kNone,
       .run = Prepare},
      {.name = "data show",
       .positionals = "JOB.yaml",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Prints exactly the samples that training reads at a step.",
       .flags = {&kStepFlag, &kSetFlag},
       .cluster = ClusterUse::kNone,
       .run = ShowData},
  };
}

}  // namespace troupe
