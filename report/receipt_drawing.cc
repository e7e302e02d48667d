#include "report/receipt_drawing.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {
namespace {

struct Fold {
  const char* id;
  const char* title;
  std::vector<std::string_view> fields;  // names of the receipt, without those within them
};

// The fold of the fields that no other one names.
constexpr size_t kLastFold = 5;

// In the order of the page.
std::vector<Fold> Folds() {
  return {
      {"receipt-environment", "Environment", {"environment"}},
      {"receipt-plan",
       "Plan",
       {"job", "state", "plan_digest", "topology", "model_mix", "batch_geometry", "sequence_length",
        "workload", "precision", "schedule", "overlap_policy", "bucket_policy", "compiler_options",
        "target_shape"}},
      {"receipt-steady", "Steady steps", {"warm_up", "steps_apart", "steady", "seen_pairs"}},
      {"receipt-compile", "Preparation", {"compile"}},
      {"receipt-doubts", "Doubts", {"suspect", "fallbacks", "restarts", "moves", "write_method"}},
      {"receipt-others", "Other plans and fields", {}}};
}

size_t FoldOf(const std::vector<Fold>& folds, std::string_view row) {
  const std::string_view field = row.substr(0, row.find('.'));
  const auto found = std::ranges::find_if(
      folds, [field](const Fold& fold) { return std::ranges::count(fold.fields, field) > 0; });
  return found == folds.end() ? kLastFold : static_cast<size_t>(found - folds.begin());
}

// Whether MFU is absent although there were steady steps: the peak of a device is not known.
bool LacksPeak(const JobReport& report) {
  return report.receipt && report.receipt->steady().steps() > 0 &&
         !report.receipt->steady().has_mfu();
}

}  // namespace

void DrawReceipt(const JobReport& report, Markup* page) {
  if (report.receipt_rows.empty()) {
    page->Element("p", {{"class", "note"}}, "There is no receipt.");
    return;
  }
  const bool lacks_peak = LacksPeak(report);
  const std::vector<Fold> folds = Folds();
  std::vector<TextRows> rows(folds.size());
  for (const auto& row : report.receipt_rows) {
    if (lacks_peak && (row.first == "steady.mfu" || row.first == "steady.mfu_convention")) continue;
    rows[FoldOf(folds, row.first)].push_back(row);
  }
  if (lacks_peak && !StepsLackMfu(report)) {
    page->Element("p", {{"class", "note"}}, kPeakNotKnown);
  }
  bool is_first = true;
  for (size_t i = 0; i < folds.size(); ++i) {
    if (rows[i].empty()) continue;
    Markup::Attributes attributes = {{"id", folds[i].id}};
    if (is_first) attributes.push_back({"open", ""});
    is_first = false;
    page->Open("details", attributes);
    page->Element("summary", {}, folds[i].title);
    DrawRows(rows[i], page);
    page->Close();
  }
}

}  // namespace troupe
