#include "plan/job/path_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "plan/job/job_name.h"

namespace troupe {
namespace {

constexpr std::string_view kJobMark = "jobs/";  // begins the resource name of a job
constexpr std::string_view kIndexEnding = ".idx";
constexpr std::array<std::string_view, 3> kJobFileEndings = {".yaml", ".yml", ".json"};
constexpr std::array<std::string_view, 9> kTextEndings = {".txt", ".text", ".md", ".json", ".jsonl",
                                                          ".csv", ".tsv",  ".gz", ".zst"};

// Whether `text` may be one of the two parts of a name of the Hugging Face hub.
bool IsHubWord(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

std::string DatasetHint(std::string_view path) {
  if (path.ends_with(kIndexEnding)) {
    return fmt::format("; state the prefix without the ending, {}",
                       path.substr(0, path.size() - kIndexEnding.size()));
  }
  if (std::ranges::any_of(kTextEndings, [&](auto ending) { return path.ends_with(ending); })) {
    return fmt::format(
        "; `troupe data prepare --output PREFIX {}` makes a dataset of a text: state PREFIX here",
        path);
  }
  return "; `troupe data prepare --output PREFIX FILE` makes a dataset of a text: state PREFIX "
         "here";
}

std::string JobFileHint(std::string_view path) {
  if (path.starts_with(kJobMark)) {
    // This may also be a file in a folder of that name.
    if (std::ranges::any_of(kJobFileEndings, [&](auto ending) { return path.ends_with(ending); }))
      return "";
    return fmt::format("; `troupe describe {}` shows the job, and this command needs a job file",
                       path);
  }
  if (!IsJobId(path) || path.find('.') != std::string_view::npos) return "";
  return fmt::format(", and this command needs a job file; if {0} is a job: `troupe describe {0}`",
                     path);
}

std::string ModelFromHint(std::string_view stated) {
  const size_t slash = stated.find('/');
  if (slash == std::string_view::npos) return "";
  const std::string_view first = stated.substr(0, slash), second = stated.substr(slash + 1);
  if (!IsHubWord(first) || !IsHubWord(second)) return "";
  if (stated.starts_with(kJobMark)) {
    return fmt::format(
        "; to go on from the job {}, state a checkpoint of `troupe checkpoints list {}` as "
        "checkpoint.initial_load",
        second, second);
  }
  return fmt::format(
      "; a model of the Hugging Face hub is downloaded first, for instance with `hf download {} "
      "--local-dir DIR`: state DIR here",
      stated);
}

}  // namespace troupe
