// Converts receipts to JSON and to text, and decides which of them may be compared. Pure.
#ifndef TROUPE_REPORT_TEXT_RECEIPT_TEXT_H_
#define TROUPE_REPORT_TEXT_RECEIPT_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "report/text/json_text.h"
#include "troupe/v1/receipt.pb.h"

namespace troupe {

// Names and shapes are a contract (docs/receipts.md); a value that was not measured is null.
Json ReceiptToJson(const v1::Receipt& receipt);

// Each field of a receipt, "steady.mfu", with its value as text.
using ReceiptRows = std::vector<std::pair<std::string, std::string>>;

// Returns the fields of `receipt`, the result of ReceiptToJson: first why its figures may mislead
// ("suspect"), then the others in its order. A list has a row for each entry, and each other plan
// has one row.
ReceiptRows ReceiptToRows(const Json& receipt);

// Formats the rows of `receipt`, the result of ReceiptToJson, as lines of at most 80 columns, apart
// from longer words. A value that does not fit next to its field is below it.
std::string ReceiptToText(const Json& receipt);

// Formats one of a receipt's `other_plans` as a line, "sha256:…: 12 steady steps, 1000 tokens/s,
// bfloat16, 1F1B".
std::string OtherPlanLine(const Json& receipt);

// Returns the differences between the headers of two receipts, each as "FIELD: A in the first, B in
// the second". Measurements can be compared only under the same environment, topology, model_mix,
// batch_geometry, sequence_length, workload and precision.
std::vector<std::string> UnlikeFields(const Json& a, const Json& b);

}  // namespace troupe

#endif  // TROUPE_REPORT_TEXT_RECEIPT_TEXT_H_
