#include "cli/output/list_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "plan/job/job_name.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

std::vector<std::string> StateWords() {
  std::vector<std::string> words;
  const auto& states = *v1::JobState_descriptor();
  for (int i = 0; i < states.value_count(); ++i) {
    const auto state = static_cast<v1::JobState>(states.value(i)->number());
    if (state != v1::JOB_STATE_UNSPECIFIED) words.push_back(StateText(state));
  }
  words.emplace_back(kMovingState);
  return words;
}

}  // namespace

StatusOr<ListFilter> ListFilter::Make(std::vector<std::string> states,
                                      std::optional<std::string> in_namespace) {
  const std::vector<std::string> words = StateWords();
  ListFilter filter;
  for (std::string& state : states) {
    const std::string given = state;
    std::ranges::transform(state, state.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (!std::ranges::count(words, state))
      return InvalidArgument("--state is \"{}\"; must be {}", given, fmt::join(words, ", "));
  }
  if (in_namespace && !IsName(*in_namespace)) {
    return InvalidArgument("--namespace is \"{}\"; must match {}", *in_namespace, kNamePattern);
  }
  filter.states_ = std::move(states);
  filter.namespace_ = std::move(in_namespace);
  return filter;
}

bool ListFilter::Accepts(const v1::Job& job) const {
  if (namespace_ && NamespaceOf(JobId(job.name())) != *namespace_) return false;
  return states_.empty() || std::ranges::count(states_, StateText(job)) != 0 ||
         std::ranges::count(states_, StateText(job.state())) != 0;
}

std::string ListFilter::NoneText(size_t jobs) const {
  if (jobs == 0) return "there are no jobs";
  std::string text = jobs == 1 ? "the only job is not" : fmt::format("none of {} jobs is", jobs);
  if (!states_.empty()) text += fmt::format(" {}", fmt::join(states_, " or "));
  if (namespace_) text += fmt::format(" in the namespace {}", *namespace_);
  return text;
}

}  // namespace troupe
