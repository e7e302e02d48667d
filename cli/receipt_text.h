// Receipts as JSON and as lines of text, and which of them may be compared. Pure.
#ifndef TROUPE_CLI_RECEIPT_TEXT_H_
#define TROUPE_CLI_RECEIPT_TEXT_H_

#include <string>
#include <vector>

#include "cli/json_text.h"
#include "troupe/v1/receipt.pb.h"

namespace troupe {

// Names and shapes are a contract (docs/receipts.md); what was not measured is null.
Json ReceiptToJson(const v1::Receipt& receipt);

// `receipt` as ReceiptToJson makes it; several lines, each with its end. Other plans have one each.
std::string ReceiptToText(const Json& receipt);

// One of a receipt's `other_plans` in a line, "sha256:…: 12 steady steps, 1000 tokens/s, bfloat16, 1F1B".
std::string OtherPlanLine(const Json& receipt);

// Where the headers of two receipts differ, "FIELD: A here, B there" each: the conditions under which
// figures can be compared are environment, topology, model_mix, batch_geometry, sequence_length,
// workload and precision.
std::vector<std::string> UnlikeFields(const Json& a, const Json& b);

}  // namespace troupe

#endif  // TROUPE_CLI_RECEIPT_TEXT_H_
