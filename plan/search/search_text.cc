#include "plan/search/search_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/scaled.h"
#include "base/text/wrapped.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLineColumns = 80;

std::string Joined(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : " ") + key;
  return text;
}

// Removes the numbers from a reason, so that similar reasons are counted together.
std::string WithoutNumbers(const std::string& reason) {
  std::string text;
  for (const char c : reason) {
    const bool digit = (c >= '0' && c <= '9') || c == '.';
    if (!digit) {
      text += c;
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  return text;
}

// An indented paragraph.
std::string Inner(const std::string& text) {
  return "  " + Wrapped(text, kLineColumns - 2, "    ") + "\n";
}

}  // namespace

std::string SearchToText(const SearchResult& result) {
  std::string text;
  if (result.best.empty()) text += "no layout fits\n";
  for (const FoundLayout& found : result.best) {
    text += fmt::format("{:.4g} s per step, MFU {:.1f}%, {} per rank:\n", found.time.seconds,
                        100 * found.time.mfu, Scaled(static_cast<double>(found.memory_bytes), "B"));
    text += Inner(Joined(found.keys));
  }
  struct Like {
    int count = 0;
    const RejectedLayout* first = nullptr;
  };
  std::map<std::string, Like> by_reason;
  for (const RejectedLayout& rejected : result.rejected) {
    Like& like = by_reason[WithoutNumbers(rejected.reason)];
    if (like.count++ == 0) like.first = &rejected;
  }
  std::vector<Like> order;
  for (const auto& [reason, like] : by_reason) order.push_back(like);
  std::stable_sort(order.begin(), order.end(),
                   [](const Like& a, const Like& b) { return a.count > b.count; });
  text += fmt::format("{} rejected:\n", result.rejected.size());
  for (const Like& like : order) {
    text += Inner(fmt::format("{} layout{} such as {}: {}", like.count, like.count == 1 ? "" : "s",
                              Joined(like.first->keys), like.first->reason));
  }
  return text;
}

std::string SearchToJson(const SearchResult& result) {
  Json best = Json::array();
  for (const FoundLayout& found : result.best) {
    best.push_back({{"keys", found.keys},
                    {"step_seconds", found.time.seconds},
                    {"mfu", found.time.mfu},
                    {"bubble_ratio", found.time.bubble_ratio},
                    {"memory_bytes", found.memory_bytes}});
  }
  Json rejected = Json::array();
  for (const RejectedLayout& layout : result.rejected) {
    rejected.push_back({{"keys", layout.keys}, {"reason", layout.reason}});
  }
  const Json json = {{"best", std::move(best)}, {"rejected", std::move(rejected)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe
